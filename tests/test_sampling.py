import math
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
import torch

from agentspec.config import SamplingParams
from agentspec.errors import ConfigError
from agentspec.grammar.base import FREE, Cursor, Mask
from agentspec.places import DEAD_END, History, Place, branch_seed
from agentspec.sampling import logprobs, noise, pick

EOS = 2


def picked(
    logits: list[float], *, prompt: tuple[int, ...] = (), written: tuple[int, ...] = (), **params: object
) -> int:
    history = History(prompt)
    for token in written:
        history.append(token)
    place = Place(SamplingParams.of(params), 0, len(prompt) + len(written), FREE, history, (), frozenset({EOS}))
    return pick(torch.tensor([logits]), [place])[0]


def test_noise_is_the_same_for_ever() -> None:
    # Pinned: recorded runs are replayed by it. Changing it changes every sampled output in the world.
    values = noise(7, 3, torch.tensor([0, 1, 151_935]))
    assert values.tolist() == pytest.approx([0.20713, 0.96336, 1.62328], abs=1e-5)


def test_noise_does_not_depend_on_which_tokens_are_asked_for() -> None:
    whole = noise(1, 2, torch.arange(1000))
    assert torch.equal(noise(1, 2, torch.tensor([900, 17])), whole[[900, 17]])


def test_law_7_picks_over_positions_and_over_seeds_follow_softmax() -> None:
    chances = [0.5, 0.3, 0.15, 0.05]
    logits = torch.tensor([[math.log(chance) for chance in chances]] * 4000)
    params = SamplingParams(temperature=1.0)
    for places in (
        [Place(params, 5, position, FREE) for position in range(4000)],
        [Place(params, seed, 5, FREE) for seed in range(4000)],
    ):
        counts = Counter(pick(logits, places))
        surprise = sum((counts[i] - 4000 * chance) ** 2 / (4000 * chance) for i, chance in enumerate(chances))
        assert surprise < 16.3  # chi-square, 3 degrees of freedom, 0.1 %


class Forbids:
    """A grammar that forbids the token 0."""

    segment = FREE.segment
    accepting = True

    def advance(self, token: int) -> "Forbids":
        return self

    def mask(self) -> Mask:
        return np.array([0b1110], dtype=np.uint32)

    def forced(self, limit: int) -> tuple[int, ...]:
        return ()


class Holds:
    """A grammar that allows these tokens, and counts how often it was asked for all of them."""

    segment = FREE.segment
    accepting = False

    def __init__(self, *allowed: int) -> None:
        self.allowed, self.masks = allowed, 0

    def advance(self, token: int) -> "Holds | None":
        return self if token in self.allowed else None

    def mask(self) -> Mask:
        self.masks += 1
        return np.array([sum(1 << token for token in self.allowed)], dtype=np.uint32)

    def forced(self, limit: int) -> tuple[int, ...]:
        return ()


@pytest.mark.parametrize(
    ("allowed", "expected", "masks"),
    [
        ((0, 3), 3, 0),  # the likeliest token may follow: nobody need know what else may
        ((0, 1), 1, 1),  # it may not: the likeliest of those that may
        ((EOS,), EOS, 1),
        ((), DEAD_END, 1),
    ],
)
def test_a_greedy_pick_asks_for_a_mask_only_where_the_likeliest_token_is_refused(
    allowed: tuple[int, ...], expected: int, masks: int
) -> None:
    cursor = Holds(*allowed)
    picks = pick(torch.tensor([[0.0, 2.0, 1.0, 3.0]]), [Place(SamplingParams(temperature=0.0), 0, 5, cursor)])
    assert (picks[0], cursor.masks) == (expected, masks)


def test_a_greedy_pick_under_a_penalty_is_masked_as_ever() -> None:
    # Token 3 is the likeliest and may follow, but a bias makes it less likely than token 1.
    cursor, params = Holds(1, 3), SamplingParams.of({"temperature": 0.0, "logit_bias": {3: -2.0}})
    place = Place(params, 0, 5, cursor, History(()))
    assert pick(torch.tensor([[9.0, 2.0, 1.0, 3.0]]), [place])[0] == 1


@pytest.mark.parametrize(
    ("params", "cursor", "expected"),
    [
        ({"temperature": 0.5}, FREE, [0.25, 0.09, 0.04]),  # squared
        ({"top_k": 2}, FREE, [0.5, 0.3, 0.0]),
        ({"top_p": 0.75}, FREE, [0.5, 0.3, 0.0]),
        ({"min_p": 0.5}, FREE, [0.5, 0.3, 0.0]),
        ({}, Forbids(), [0.0, 0.3, 0.2]),
        ({"top_p": 0.55}, Forbids(), [0.0, 0.3, 0.0]),  # the nucleus is of what the grammar leaves
    ],
)
def test_p3_picks_follow_the_processed_distribution(
    params: dict[str, object], cursor: Cursor, expected: list[float]
) -> None:
    sampling = SamplingParams.of({"temperature": 1.0, **params})
    logits = torch.tensor([[math.log(chance) for chance in (0.5, 0.3, 0.2)]] * 6000)
    counts = Counter(pick(logits, [Place(sampling, 8, position, cursor) for position in range(6000)]))
    for token, weight in enumerate(expected):
        share = weight / sum(expected)
        assert counts[token] / 6000 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 6000))


def test_consecutive_picks_are_independent() -> None:
    logits = torch.zeros(8001, 2)
    picks = list(pick(logits, [Place(SamplingParams(temperature=1.0), 1, i, FREE) for i in range(8001)]))
    pairs = Counter(pairwise(picks))
    assert all(abs(pairs[pair] - 2000) < 150 for pair in product((0, 1), repeat=2))


def test_contenders_are_all_that_can_win() -> None:
    # The CPU leaves out tokens that no noise can lift over the likeliest; the full draw must agree.
    generator = torch.Generator().manual_seed(0)
    for position in range(200):
        logits = torch.randn(1, 500, generator=generator) * 12
        full = (logits[0].double() + noise(9, position, torch.arange(500))).argmax()
        assert pick(logits, [Place(SamplingParams(temperature=1.0), 9, position, FREE)])[0] == int(full)


def test_a_tie_goes_to_the_lowest_id() -> None:
    assert picked([0.0, 3.0, 0.0, 3.0]) == 1


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, 0),
        ({"logit_bias": {"0": -100}}, 1),
        ({"logit_bias": {3: 20}}, 3),
        ({"logit_bias": {99: 20}}, 0),
        ({"bad_words": [(0,)]}, 1),
        ({"bad_words": [(3, 0)]}, 1),  # the last token written is 3
        ({"bad_words": [(1, 0)]}, 0),
        ({"frequency_penalty": 0.6}, 1),  # 0 was written twice: 10 - 1.2 < 9
        ({"presence_penalty": 0.6}, 0),  # but once only counts once: 10 - 0.6 > 9
        ({"presence_penalty": 1.2}, 1),
        ({"repetition_penalty": 2.0}, 1),
    ],
)
def test_each_processor_by_itself(params: dict[str, object], expected: int) -> None:
    assert picked([10.0, 9.0, 1.0, 2.0], written=(0, 0, 3), **params) == expected


def test_repetition_counts_the_prompt_but_the_other_penalties_do_not() -> None:
    assert picked([10.0, 9.0, 0.0], prompt=(0,), repetition_penalty=2.0) == 1
    assert picked([10.0, 9.0, 0.0], prompt=(0,), frequency_penalty=2.0, presence_penalty=2.0) == 0


def test_the_end_token_is_held_back_until_min_tokens() -> None:
    assert picked([1.0, 0.0, 9.0], written=(0, 0), min_tokens=3) == 0
    assert picked([1.0, 0.0, 9.0], written=(0, 0, 0), min_tokens=3) == EOS


def test_nothing_left_is_a_dead_end() -> None:
    assert picked([1.0, 2.0], logit_bias={0: -100, 1: -100}) == DEAD_END


@pytest.mark.parametrize(
    ("params", "allowed"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.8}, {0, 1}),  # 0.5 + 0.3 reaches it
        ({"top_p": 0.81}, {0, 1, 2}),
        ({"min_p": 0.35}, {0, 1}),  # 0.15 / 0.5 = 0.3
    ],
)
def test_filters_leave_exactly_the_likely_tokens(params: dict[str, object], allowed: set[int]) -> None:
    logits = torch.tensor([[math.log(chance) for chance in (0.5, 0.3, 0.15, 0.05)]] * 600)
    sampling = SamplingParams.of({"temperature": 1.0, **params})
    assert set(pick(logits, [Place(sampling, 3, position, FREE) for position in range(600)])) == allowed


def test_answers_to_one_prompt_have_noise_of_their_own() -> None:
    assert branch_seed(5, 0) == 5
    assert len({branch_seed(5, index) for index in range(100)}) == 100


def test_logprobs_are_of_the_unprocessed_logits() -> None:
    own, top = logprobs(torch.tensor([0.0, 0.0]), 1, 1)
    assert own == pytest.approx(-math.log(2))
    assert list(top.values()) == [pytest.approx(-math.log(2))]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"best_of": 3}, "'best_of' is not supported"),
        ({"temperature": -1}, "temperature must be in 0..100, not -1"),
        ({"temperature": float("nan")}, "temperature"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number"),
        ({"top_p": 0}, "top_p"),
        ({"stop": [""]}, "stop must hold non-empty strings"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {1: 101}}, "logit_bias"),
        ({"min_tokens": 9, "max_tokens": 3}, "min_tokens 9 is more than max_tokens 3"),
        ({"n": 0}, "n must be"),
        ({"logit_bias": {1.7: 5}}, "logit_bias"),
        ({"logit_bias": {True: 5}}, "logit_bias"),
        ({"bad_words": "abc"}, "bad_words must be a list"),
        ({"bad_words": [(True,)]}, "bad_words"),
        ({"bad_words": [5]}, "bad_words"),
        ({"bad_words": ["a\ud800"]}, "bad_words holds a lone surrogate"),
        ({"stop_token_ids": [True]}, "stop_token_ids"),
        ({"repetition_penalty": 10**400}, "repetition_penalty"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SamplingParams.of(values)
