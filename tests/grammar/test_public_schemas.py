"""The public schemas beside the checkout: enforced, or refused by keyword and path; what is enforced holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from public_schemas import DOCUMENTS, checker, documents, in_order, recorded
from toy_vocabulary import TV, accepts

from agentspec.errors import GrammarError
from agentspec.grammar.schema import schema_guide

pytestmark = pytest.mark.traces

REFUSED = {
    "schemastore-abc-clinical-demand-forecast-3.0.0": "'oneOf' at $.properties.analytics.properties.items.items:",
    "schemastore-abc-supply-plan-1.0.0": "'format' at $.properties.planNotes:",
    "schemastore-abc-supply-plan-10.0.0": "'format' at $.properties.planNotes:",
    "schemastore-dependabot-2.0": "'uniqueItems' at $.definitions.update-types:",
    "schemastore-enonic-xp-api-8.0.0": "'uniqueItems' at $.properties.mount:",
    "schemastore-enonic-xp-layout-8.0.0": "'minimum' at $.$defs.longDef.properties.max:",
    "schemastore-modelparams": "'propertyNames' at $.definitions.Model.properties.params.items",
    "schemastore-utam-page-object": "'$ref' at $.definitions.pageObject.properties.selector:",
    "suite-patternProperties-1": "'patternProperties' at $:",
    "suite-unevaluatedItems-14": "'if' at $:",
}


@pytest.fixture(scope="module", autouse=True)
def schemas(shared: Any) -> dict[str, dict[str, Any]]:
    return recorded()


def test_each_is_enforced_or_refused_by_keyword_and_path(schemas: dict[str, dict[str, Any]]) -> None:
    said = {}
    for name, row in schemas.items():
        try:
            schema_guide(TV, row["schema"])
        except GrammarError as error:
            said[name] = str(error)
    assert said.keys() == REFUSED.keys()
    assert [name for name, words in REFUSED.items() if words not in said[name]] == []


def test_what_is_written_under_an_enforced_schema_is_valid(schemas: dict[str, dict[str, Any]]) -> None:
    for name in schemas.keys() - REFUSED.keys():
        schema = schemas[name]["schema"]
        for text in documents(TV, schema_guide(TV, schema), seed=1, count=DOCUMENTS):
            checker(schema).validate(json.loads(text))


def test_recorded_documents_are_accepted_if_valid_and_refused_if_not(schemas: dict[str, dict[str, Any]]) -> None:
    differs = set()
    for name in schemas.keys() - REFUSED.keys():
        schema = schemas[name]["schema"]
        for index, row in enumerate(schemas[name]["tests"]):
            text = json.dumps(in_order(row["data"], [schema], schema), ensure_ascii=False)
            if accepts(schema_guide(TV, schema), text) != row["valid"]:
                differs.add((name, index))
    assert differs == set()
