"""Laws 1 to 3: nothing that speeds decoding up changes a token, at any temperature, alone or in a batch."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Literal

import pytest
import torch
from engine_doubles import byte_asker
from fault_cases import as_tool
from pydantic import BaseModel
from toy_vocabulary import EOS, IM_END, TV

from agentspec.config import EngineConfig, SamplingParams
from agentspec.draft import ROOT, Draft
from agentspec.engine.request import Event, Order
from agentspec.local.ask import Ask
from agentspec.models.base import Row, TargetModel
from agentspec.models.hf import HFTarget
from agentspec.models.toy import tiny_target
from agentspec.proposers.base import Context, Off, Proposer
from agentspec.proposers.model import ModelProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.proposers.registry import build_proposer
from agentspec.proposers.suffix import SuffixProposer
from agentspec.testing import ScriptedProposer, ScriptedTarget, assert_lossless, order, run

NO_END: frozenset[int] = frozenset()


class RandomTrees(ScriptedProposer):
    """Adversarial: random trees of random tokens, legal or not."""

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        return [self._tree(Random(len(context.tokens)), context.budget) for context in contexts]

    def _tree(self, random: Random, budget: int) -> Draft:
        tree: list[tuple[int, int]] = []
        for _ in range(budget):
            node = (random.randint(0, 400), random.randint(ROOT, len(tree) - 1))
            tree += [] if node in tree else [node]
        return tree_of(tree)


class TruthAmongNoise(ScriptedProposer):
    """Trees in which the right continuation, known from a plain run, is a late branch among wrong ones."""

    def __init__(self, answers: Sequence[Sequence[int]]) -> None:
        super().__init__([], name="truth")
        self._answers = answers

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        return [self._tree(context) for context in contexts]

    def _tree(self, context: Context) -> Draft:
        tokens = list(context.tokens)
        (answer,) = [each for each in self._answers if list(each[: len(tokens)]) == tokens]
        tree: list[tuple[int, int]] = []
        parent = ROOT
        for token in answer[len(tokens) : len(tokens) + 3]:
            tree += [((token + 1) % 320, parent), (token, parent)]
            parent = len(tree) - 1
        return tree_of(tree[: context.budget])


def tree_of(nodes: Sequence[tuple[int, int]]) -> Draft:
    size = len(nodes)
    return Draft(
        tuple(token for token, _ in nodes), tuple(above for _, above in nodes), (0.5,) * size, ("test",) * size
    )


@pytest.fixture(scope="module")
def target() -> HFTarget:
    return tiny_target()


@pytest.fixture(scope="module")
def poor() -> HFTarget:
    return tiny_target(layers=1, seed=1)


PROPOSERS: dict[str, Callable[[HFTarget, HFTarget], Proposer]] = {
    "suffix": lambda target, poor: SuffixProposer(TV),
    "itself": lambda target, poor: ModelProposer(target, eos=NO_END),
    "poor model": lambda target, poor: ModelProposer(poor, eos=NO_END),
    "pool": lambda target, poor: ProposerPool([SuffixProposer(TV), ModelProposer(poor, eos=NO_END)]),
    "garbage": lambda target, poor: ScriptedProposer([1, 999, 5]),
    "random trees": lambda target, poor: RandomTrees(),
}


def orders(temperature: float, count: int) -> list[Callable[[], Order]]:
    def make(index: int) -> Callable[[], Order]:
        prompt = [(7 * index + place) % 6 + 3 for place in range(8 + 3 * index)]
        return lambda: order(prompt, max_tokens=40 + index, temperature=temperature, seed=index)

    return [make(index) for index in range(count)]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", PROPOSERS)
def test_laws_1_and_2_output_equals_plain_decoding_alone(
    name: str, temperature: float, batch: int, target: HFTarget, poor: HFTarget
) -> None:
    answers = assert_lossless(target, PROPOSERS[name](target, poor), *orders(temperature, batch))
    assert [len(answer.tokens) for answer in answers] == [40, 41, 42, 43][:batch]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_law_1_holds_when_a_late_branch_of_a_tree_is_the_right_one(temperature: float, target: HFTarget) -> None:
    made = orders(temperature, 3)
    plain = run(target, Off(), *(make() for make in made))
    truth = TruthAmongNoise([[*make().prompt, *answer.tokens] for make, answer in zip(made, plain, strict=True)])
    answers = assert_lossless(target, truth, *made)
    assert len(answers[0].events) == 12  # nine rounds of four tokens, then the budget shrinks with what is left


def test_p5_in_bfloat16_a_token_that_differs_is_a_near_tie() -> None:
    target = HFTarget(tiny_target().model.to(torch.bfloat16))
    for make in orders(0.0, 4):
        (answer,) = run(target, SuffixProposer(TV), make())
        slot = target.open()
        for place, token in enumerate(answer.tokens):
            pending = slot.sync([*make().prompt, *answer.tokens[:place]])
            logits = target.forward([Row(slot, pending)]).logits[0]
            top = float(logits.max())
            # Every layer rounds, so the logits of two widths differ by some steps of bfloat16: 5 at the most here.
            assert top - float(logits[token]) <= 6 * 2.0 ** (math.frexp(top)[1] - 8)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_p5_strict_decoding_in_bfloat16_is_exact(temperature: float) -> None:
    target = HFTarget(tiny_target().model.to(torch.bfloat16), static_widths=[9])
    strict = EngineConfig(max_draft=8, strict=True)
    for make in orders(temperature, 4):
        plain, again = run(target, Off(), make(), make(), config=strict)
        assert again.tokens == plain.tokens  # a prefix from the cache would have other bits
        for proposer in (SuffixProposer(TV), ModelProposer(target, eos=NO_END), RandomTrees()):
            assert run(target, proposer, make(), config=strict)[0].tokens == plain.tokens


def test_law_3_a_prefix_from_the_cache_changes_nothing(target: HFTarget) -> None:
    prompt = [index % 50 for index in range(90)]
    first = lambda: order(prompt, max_tokens=12)  # noqa: E731
    longer = lambda answer: order([*prompt, *answer, 8, 9], max_tokens=12)  # noqa: E731
    (cold,) = run(target, Off(), first())
    (cold_next,) = run(target, Off(), longer(cold.tokens))
    one_at_a_time = EngineConfig(max_running=1, prefill_chunk=16)
    warm = run(target, SuffixProposer(TV), first(), longer(cold.tokens), first(), config=one_at_a_time)
    assert [answer.tokens for answer in warm] == [cold.tokens, cold_next.tokens, cold.tokens]


@pytest.mark.parametrize(
    "params",
    [
        {"frequency_penalty": 0.6, "presence_penalty": 0.3},
        {"repetition_penalty": 1.6},
        {"logit_bias": {str(token): -100 for token in range(0, 320, 3)}},
        {"top_k": 5, "temperature": 0.7},
        {"top_p": 0.8, "min_p": 0.02, "temperature": 1.3},
        {"bad_words": [(71,), (221, 169)], "min_tokens": 9},
    ],
)
def test_every_processor_acts_on_every_row(params: dict[str, object], target: HFTarget) -> None:
    make = lambda: order([3, 4, 5, 6, 7, 8], max_tokens=48, **params)  # noqa: E731
    for proposer in (ModelProposer(target, eos=NO_END), SuffixProposer(TV), RandomTrees()):
        assert_lossless(target, proposer, make)


class Person(BaseModel):
    name: Literal["Ann", "Bob"]
    pet: Literal["cat", "dog", "dodo"]
    ill: bool


FILE = "".join(f'def f{name}(x):\n\tprint("{name} \\n", x)\n' for name in ("one", "two"))
TOOLS = [as_tool("write_file", {"type": "string"}), as_tool("order", {"enum": ["S", "M", "XL"]})]
CALL = f'<tool_call>\n{{"name": "write_file", "arguments": {{"x": {json.dumps(FILE)}}}}}\n</tool_call>'
JOBS: list[tuple[str, dict[str, Any]]] = [
    ('{"name": "Ann", "pet": "dodo", "ill": false}', {"output_type": Person}),
    ('{\n  "name": "Bob",\n  "pet": "cat",\n  "ill": true\n}', {"json_schema": Person, "json_whitespace": "bounded"}),
    ('["red", "green", "red"]', {"output_type": list[Literal["red", "green"]]}),
    (CALL, {"tools": TOOLS, "tool_choice": "required"}),
    (f"Sure.\n{CALL}", {"tools": TOOLS}),
    ('{"name": "order", "arguments": {"x": "XL"}}', {"tools": TOOLS}),  # a call that nothing enforces
    (FILE.replace("x", "y"), {"prediction": FILE}),
    ("Something else.", {"prediction": FILE}),
    (json.dumps([{"size": size, "to": {"x": x}, "n": None} for x, size in enumerate("SMLM")]), {}),  # nothing holds it
]
"""What a target would write, and what it is asked for."""


def everything(temperature: float, *, most: int) -> list[Callable[[], Order]]:
    def make(place: int, options: dict[str, Any]) -> Callable[[], Order]:
        params = SamplingParams(temperature=temperature, seed=place, max_tokens=most)
        ask = Ask(f"{place}: copy this.\n{FILE}", params, {**options, "caller": "ann"})  # type: ignore[typeddict-item]
        return lambda: byte_asker().read(ask)[0][0]

    return [make(place, options) for place, (_, options) in enumerate(JOBS)]


def slipping(jobs: Sequence[Callable[[], Order]]) -> ScriptedTarget:
    """Writes each job's text, if it does not slip, as it does at a temperature once in a hundred tokens."""
    answers = {tuple(make().prompt): [*text.encode(), EOS] for make, (text, _) in zip(jobs, JOBS, strict=True)}

    def logits(tokens: Sequence[int]) -> dict[int, float]:
        for prompt, answer in answers.items():
            if tuple(tokens[: len(prompt)]) == prompt:
                return {answer[min(len(tokens) - len(prompt), len(answer) - 1)]: 10.5}
        return {}  # a chunk of a prompt

    return ScriptedTarget(logits, vocab_size=320, eos=frozenset({EOS, IM_END}))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(("kind", "batch"), [("slipping", 1), ("slipping", 4), ("tiny", 4)])
def test_laws_1_and_2_with_every_source_segments_trees_and_a_warm_store(
    kind: str, temperature: float, batch: int
) -> None:
    jobs = everything(temperature, most=150) if kind == "slipping" else everything(temperature, most=20)[::2]
    target: TargetModel = slipping(jobs) if kind == "slipping" else tiny_target(eos=[EOS, IM_END])
    plain = [run(target, Off(), make())[0] for make in jobs]
    proposer, accepted = build_proposer(None, vocabulary=TV, draft_model=None), Counter[str]()
    for _ in range(2):  # the second time, all of it is among the answers that this caller had
        again = run(target, proposer, *(make() for make in jobs), config=EngineConfig(max_running=batch), max_draft=12)
        assert [(each.tokens, each.finish_reason) for each in again] == [
            (each.tokens, each.finish_reason) for each in plain
        ]
        accepted.update(source for each in again for event in each.events if event.record for source in taken(event))
    wanted = proposer.sources if kind == "slipping" else ("grammar", "answers")
    assert [source for source in wanted if not accepted[source]] == []


def taken(event: Event) -> list[str]:
    """The source of each node that a round accepted."""
    return [] if event.record is None else [event.record.draft.sources[node] for node in event.record.path]
