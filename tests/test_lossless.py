"""Laws 1 to 3: nothing that speeds decoding up changes a token, at any temperature, alone or in a batch."""

import math
from collections.abc import Callable, Sequence
from random import Random

import pytest
import torch
from toy_vocabulary import TV

from agentspec.config import EngineConfig
from agentspec.draft import ROOT, Draft
from agentspec.engine.request import Order
from agentspec.models.base import Row
from agentspec.models.hf import HFTarget
from agentspec.models.toy import tiny_target
from agentspec.proposers.base import Context, Off, Proposer
from agentspec.proposers.model import ModelProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.proposers.suffix import SuffixProposer
from agentspec.testing import ScriptedProposer, assert_lossless, order, run

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
