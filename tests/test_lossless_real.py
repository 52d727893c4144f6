"""Law 1 on a real model: SmolLM2 writes the same tokens with and without drafts, whatever is asked of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentspec import Engine, SamplingParams
from agentspec.local.result import Result

pytestmark = pytest.mark.real_model

SOURCE = Path(__file__).read_text(encoding="utf-8")[:900]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name.replace('_', ' ')} in the project",
            "parameters": {
                "type": "object",
                "properties": {field: {"type": "string"} for field in fields},
                "required": fields,
            },
        },
    }
    for name, fields in (("read_file", ["path"]), ("search", ["pattern", "path"]), ("run_command", ["command"]))
]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "pets": {"enum": ["cat", "dog"]}},
    "required": ["name", "age", "pets"],
    "additionalProperties": False,
}
ASKS: list[tuple[str, dict[str, Any]]] = [
    ("Find where the port is set in src/config.py.", {"tools": TOOLS, "tool_choice": "required"}),
    ("What is in README.md?", {"tools": TOOLS}),
    ("Ann is 31 and has a cat. Answer in JSON.", {"json_schema": PERSON}),
    (f"Repeat this file:\n```python\n{SOURCE}\n```", {}),
    ("Why is the sky blue?", {}),
]


@pytest.fixture(scope="module")
def engine(smollm2: Path) -> Iterator[Engine]:
    with Engine.load(str(smollm2)) as engine:
        yield engine


def ask(engine: Engine, place: int, params: SamplingParams, *, speculate: bool) -> Result:
    content, options = ASKS[place]
    return engine.generate([{"role": "user", "content": content}], params, speculate=speculate, **options)


def essence(result: Result) -> tuple[object, ...]:
    usage = result.usage
    return (result.tokens, result.text, result.finish_reason, usage.prompt_tokens, usage.completion_tokens)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_change_nothing_alone_or_in_a_batch(engine: Engine, temperature: float) -> None:
    params = SamplingParams(temperature=temperature, seed=11, max_tokens=150)
    plain = [ask(engine, place, params, speculate=False) for place in range(len(ASKS))]
    alone = [ask(engine, place, params, speculate=True) for place in range(len(ASKS))]
    with ThreadPoolExecutor(4) as pool:
        batch = list(pool.map(lambda place: ask(engine, place, params, speculate=True), range(len(ASKS))))
    expected = [essence(result) for result in plain]
    assert [essence(result) for result in alone] == expected
    assert [essence(result) for result in batch] == expected
    assert sum(result.stats.forwards for result in alone) < sum(result.stats.forwards for result in plain)


def test_processors_and_a_stop_string_on_a_real_model(engine: Engine) -> None:
    for params in (
        SamplingParams(max_tokens=90, repetition_penalty=1.2, frequency_penalty=0.3),
        SamplingParams(max_tokens=90, temperature=0.8, top_p=0.9, min_p=0.02, seed=5, stop=["the", "\n\n"]),
    ):
        plain, drafted = (ask(engine, 3, params, speculate=speculate) for speculate in (False, True))
        assert essence(drafted) == essence(plain)
