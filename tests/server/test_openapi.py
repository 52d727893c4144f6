"""The OpenAPI document keeps its word, under requests that fit it and requests that do not."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from agentspec.server.app import create_app
from agentspec.server.settings import ServerSettings

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DOCUMENT = schemathesis.openapi.from_dict(create_app(lambda: None, ServerSettings(model_names=("m",))).openapi())
OPERATIONS = {f"{each.ok().method} {each.ok().path}": each.ok() for each in DOCUMENT.get_all_operations()}
FIT = {
    "model": "smollm2-135m",
    "messages": [{"role": "user", "content": "hi"}],
    "prompt": "hi",
    "input": "hi",
    "max_tokens": 4,
}


def cases(operation: Any) -> st.SearchStrategy[Any]:
    """Requests by the document and against it; in half of them all but two fields are such as clients send."""

    def fitted(data: tuple[Any, bool, set[int]]) -> Any:
        case, fits, kept = data
        if fits and isinstance(case.body, dict):
            some = {name: value for place, (name, value) in enumerate(sorted(case.body.items())) if place in kept}
            case.body = {**{name: value for name, value in FIT.items() if name in case.body}, **some}
        return case

    written = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))
    return st.tuples(written, st.booleans(), st.sets(st.integers(0, 30), max_size=3)).map(fitted)


@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_are_documented_and_nothing_fails(scripted, name):
    scripted.engine.reply = lambda prompt: "ok"

    @settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(case=cases(OPERATIONS[name]))
    def keeps_its_word(case: Any) -> None:
        case.call_and_validate(base_url=scripted.url, checks=CHECKS)

    keeps_its_word()
