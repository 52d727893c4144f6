"""Law 1 on a real model: SmolLM2 writes the same tokens with and without drafts, whatever is asked of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agentspec import Engine, EngineConfig, SamplingParams
from agentspec.chat.chat import Chat
from agentspec.chat.formats.registry import FORMATS
from agentspec.local.ask import Asker
from agentspec.local.load import Loaded, Placement, load_models
from agentspec.local.result import Result
from agentspec.models.tokenizer import load_tokenizer

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
WRITE = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"enum": ["a.py", "b.py"]}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
    },
}


class Person(BaseModel):
    name: str
    age: int
    pet: Literal["cat", "dog"] | None


ASKS: list[tuple[str, dict[str, Any]]] = [
    ("Find where the port is set in src/config.py.", {"tools": TOOLS, "tool_choice": "required"}),
    ("What is in README.md?", {"tools": TOOLS}),
    ("Ann is 31 and has a cat. Answer in JSON.", {"json_schema": PERSON, "json_whitespace": "bounded"}),
    ("Ann is 31 and has a cat. Answer in JSON.", {"output_type": Person}),
    ("Ann is 31 and has a cat. Answer in JSON.", {"tools": TOOLS, "json_schema": PERSON}),
    ("Red, green, red, red. Which colours, in order?", {"output_type": list[Literal["red", "green", "blue"]]}),
    (f"Write this to a.py:\n{SOURCE[:400]}", {"tools": [WRITE], "tool_choice": "required"}),
    (f"Repeat this file:\n```python\n{SOURCE}\n```", {"prediction": f"```python\n{SOURCE}\n```"}),
    ("Why is the sky blue?", {"prediction": SOURCE}),
]


@pytest.fixture(scope="module")
def loaded(smollm2: Path) -> Loaded:
    config = EngineConfig(measure_cost=False)
    return load_models(str(smollm2), None, placement=Placement(dtype="float32"), config=config)


@contextmanager
def engine_of(loaded: Loaded, form: str | None = None, config: EngineConfig | None = None) -> Iterator[Engine]:
    """An engine on the loaded model, whose calls are written in this format."""
    tokenizer = load_tokenizer(str(loaded.target.model.config.name_or_path), trust_remote_code=False)
    chat = Chat(tokenizer, loaded.vocabulary, tool_format=form)
    core = loaded.core(None, config or EngineConfig(measure_cost=False))
    with Engine(core, Asker(tokenizer, loaded.vocabulary, chat)) as engine:
        yield engine


@pytest.fixture(scope="module")
def engine(loaded: Loaded) -> Iterator[Engine]:
    with engine_of(loaded) as engine:
        yield engine


def ask(engine: Engine, place: int, params: SamplingParams, *, speculate: bool) -> Result:
    content, options = ASKS[place]
    return engine.generate([{"role": "user", "content": content}], params, speculate=speculate, **options)


def essence(result: Result) -> tuple[object, ...]:
    usage = result.usage
    return (result.tokens, result.text, result.finish_reason, usage.prompt_tokens, usage.completion_tokens)


def accepted(results: Iterable[Result]) -> Counter[str]:
    return sum((result.stats.accepted for result in results), Counter[str]())


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_change_nothing_alone_or_in_a_batch(engine: Engine, temperature: float) -> None:
    params = SamplingParams(temperature=temperature, seed=11, max_tokens=24)
    with ThreadPoolExecutor(4) as pool:

        def batched(*, speculate: bool) -> list[Result]:
            return list(pool.map(lambda place: ask(engine, place, params, speculate=speculate), range(len(ASKS))))

        plain = batched(speculate=False)
        alone = [ask(engine, place, params, speculate=True) for place in range(len(ASKS))]
        batch = batched(speculate=True)  # by now the second store knows what this caller was answered
    expected = [essence(result) for result in plain]
    assert [essence(result) for result in alone] == expected
    assert [essence(result) for result in batch] == expected
    assert sum(result.stats.forwards for result in alone) < sum(result.stats.forwards for result in plain)
    found = accepted([*alone, *batch])
    # What is predicted stands in the prompt too: which of both sources is credited with it depends on what was learned.
    assert [source for source in ("grammar", "suffix", "answers") if not found[source]] == []


@pytest.mark.parametrize("form", FORMATS)
def test_drafts_change_nothing_in_any_tool_format(loaded: Loaded, form: str) -> None:
    messages = [{"role": "user", "content": "Write a greeting to a.py."}]
    asks = [
        (SamplingParams(temperature=temperature, seed=3, max_tokens=16), choice)
        for temperature, choice in ((0.0, "required"), (1.0, "auto"))
    ]
    with engine_of(loaded, form, EngineConfig(budget=6)) as engine, ThreadPoolExecutor(4) as pool:

        def answers(*, speculate: bool) -> list[Result]:
            one = lambda each: engine.generate(  # noqa: E731
                messages, each[0], tools=[WRITE], tool_choice=each[1], speculate=speculate
            )
            return list(pool.map(one, asks))

        plain, drafted = answers(speculate=False), answers(speculate=True)
    assert [essence(result) for result in drafted] == [essence(result) for result in plain]
    assert accepted(drafted)["grammar"] > 10
    assert drafted[0].stats.forwards < plain[0].stats.forwards


def test_processors_and_a_stop_string_on_a_real_model(engine: Engine) -> None:
    for params in (
        SamplingParams(max_tokens=28, repetition_penalty=1.2, frequency_penalty=0.3),
        SamplingParams(max_tokens=28, temperature=0.8, top_p=0.9, min_p=0.02, seed=5, stop=["the", "\n\n"]),
    ):
        plain, drafted = (ask(engine, 7, params, speculate=speculate) for speculate in (False, True))
        assert essence(drafted) == essence(plain)
