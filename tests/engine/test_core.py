"""The loop's edges by name."""

import logging

import pytest

from agentspec.config import EngineConfig, SamplingParams
from agentspec.draft import Draft
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Event, Order
from agentspec.errors import ConfigError, EngineError, GrammarDeadEndError, PromptError, PromptTooLongError
from agentspec.models.base import Output, Row
from agentspec.models.token_slot import TokenSlot
from agentspec.models.toy import tiny_target
from agentspec.proposers.base import Context, Off
from agentspec.proposers.pool import ProposerPool
from agentspec.testing import FixedController, ScriptedProposer, ScriptedTarget, order, run

END = 9


def counting(context_length: int = 64) -> ScriptedTarget:
    """Writes the number of tokens before it, modulo eight; never the end token."""
    return ScriptedTarget(
        lambda tokens: {len(tokens) % 8: 5.0}, vocab_size=10, eos=frozenset({END}), context_length=context_length
    )


def core_of(target: ScriptedTarget, **config: int) -> EngineCore:
    return EngineCore(target, Off(), controller=FixedController(0), config=EngineConfig(**config))


def test_the_length_limit_inside_an_accepted_run() -> None:
    for limit in range(1, 9):
        (answer,) = run(counting(), ScriptedProposer([3, 4, 5, 6, 7, 0]), order([1, 2, 3], max_tokens=limit))
        assert answer.tokens == (3, 4, 5, 6, 7, 0, 1, 2)[:limit]
        assert answer.finish_reason == "length"


def test_a_full_context_ends_the_output_as_the_length_limit_does() -> None:
    (answer,) = run(counting(context_length=8), ScriptedProposer([3, 4, 5, 6, 7, 0, 1]), order([1, 2, 3]))
    assert (answer.tokens, answer.finish_reason) == ((3, 4, 5, 6, 7), "length")


def test_a_whole_draft_accepted_gives_one_token_more() -> None:
    target = counting()
    (answer,) = run(target, ScriptedProposer([3, 4], [6, 7]), order([1, 2, 3], max_tokens=6))
    assert [event.tokens for event in answer.events] == [(3, 4, 5), (6, 7, 0)]
    assert target.forwards == 2


def test_a_record_tells_drafting_forward_and_picks_apart() -> None:
    ticks = iter(range(99))
    core = EngineCore(
        counting(), Off(), controller=FixedController(0), config=EngineConfig(), clock=lambda: float(next(ticks))
    )
    events: list[Event] = []
    core.add(Order(prompt=[1], params=SamplingParams(seed=0, max_tokens=1), listener=events.append))
    core.step()
    record = events[0].record
    assert record is not None
    # The clock ticks a second whenever it is read: at the start, around the forward, around the picks, at the end.
    assert (record.propose_ms, record.forward_ms, record.pick_ms, record.total_ms) == (1000, 1000, 1000, 5000)


def test_a_long_prompt_goes_through_in_chunks_while_others_decode() -> None:
    core = core_of(counting(), prefill_chunk=4)
    heard: list[tuple[str, tuple[int, ...]]] = []
    for name, length in (("short", 2), ("long", 10)):
        params = SamplingParams(seed=0, max_tokens=4)
        core.add(
            Order(
                prompt=[1] * length,
                params=params,
                listener=lambda event, name=name: heard.append((name, event.tokens)),  # type: ignore[misc]
            )
        )
    while not core.idle:
        core.step()
    # The long prompt takes three forwards of 4, 4 and 2 tokens: the short request writes two tokens meanwhile.
    assert [name for name, _ in heard] == ["short", "short", "short", "long", "short", "long", "long", "long"]


def test_the_next_turn_computes_only_its_new_tokens() -> None:
    core = core_of(counting(context_length=200))
    first = list(range(8)) * 5
    told: list[Event] = []
    core.add(Order(prompt=first, params=SamplingParams(seed=0, max_tokens=3), listener=told.append))
    while not core.idle:
        core.step()
    answer = [token for event in told for token in event.tokens]
    core.add(Order(prompt=[*first, *answer, 1, 2], params=SamplingParams(seed=0, max_tokens=3), listener=told.append))
    while not core.idle:
        core.step()
    assert told[2].stats is not None
    assert told[-1].stats is not None
    # 40 tokens, then the answer's last token, which was never in the cache, and the two new ones.
    assert (told[2].stats.prefill_tokens, told[-1].stats.prefill_tokens) == (40, 3)


def test_several_answers_share_one_prefill() -> None:
    target = counting(context_length=200)
    core = core_of(target)
    told: list[Event] = []
    params = SamplingParams(seed=0, max_tokens=2, temperature=1.0)
    for branch in range(3):
        core.add(Order(prompt=[5] * 50, params=params, branch=branch, listener=told.append))
    while not core.idle:
        core.step()
    assert sorted(event.stats.prefill_tokens for event in told if event.stats) == [1, 1, 50]


def test_cancelling_ends_a_running_request_before_its_next_round_and_a_waiting_one_at_once() -> None:
    core = core_of(counting(), max_running=1)
    told: dict[int, list[Event]] = {0: [], 1: []}
    for index in (0, 1):
        core.add(Order(prompt=[1], params=SamplingParams(seed=0), listener=told[index].append))
    core.step()
    core.cancel(0)
    core.cancel(1)
    core.step()
    assert [event.finish_reason for event in told[0]] == [None, "cancelled"]
    assert [event.finish_reason for event in told[1]] == ["cancelled"]
    assert core.idle
    core.cancel(0)  # over: nothing happens


def test_two_requests_that_finish_in_one_round_both_end() -> None:
    answers = run(counting(), Off(), order([1], max_tokens=2), order([1, 2], max_tokens=2))
    assert [answer.tokens for answer in answers] == [(1, 2), (2, 3)]


class Failing(ScriptedProposer):
    def propose(self, contexts: object) -> list[object]:  # type: ignore[override]
        raise RuntimeError("out of ideas")


def test_a_proposer_that_raises_costs_nothing_but_its_draft(caplog: pytest.LogCaptureFixture) -> None:
    pool = ProposerPool([Failing(name="failing"), ScriptedProposer([3, 4])])
    with caplog.at_level(logging.WARNING):
        (answer,) = run(counting(), pool, order([1, 2, 3], max_tokens=6))
    assert answer.tokens == (3, 4, 5, 6, 7, 0)
    assert len(answer.events[0].tokens) == 3  # the other member still guesses
    assert pool.failures["failing"] > 1
    assert len([record for record in caplog.records if "failing" in record.message]) == 1


def test_a_source_that_never_guesses_is_seen_in_the_stats() -> None:
    (answer,) = run(counting(), ScriptedProposer(), order([1], max_tokens=3))
    assert answer.events[-1].stats.to_dict()["drafted"] == {"scripted": 0}  # type: ignore[union-attr]


def test_a_lone_proposer_that_raises_is_plain_decoding() -> None:
    (answer,) = run(counting(), Failing(), order([1, 2, 3], max_tokens=4))
    assert answer.tokens == (3, 4, 5, 6)


def test_no_token_left_ends_that_request_alone() -> None:
    everything = {token: -100 for token in range(10)}
    core = core_of(counting())
    told: list[Event] = []
    core.add(Order(prompt=[1], params=SamplingParams(seed=0, logit_bias=everything), listener=told.append))
    fine: list[Event] = []
    core.add(Order(prompt=[1], params=SamplingParams(seed=0, max_tokens=3), listener=fine.append))
    while not core.idle:
        core.step()
    assert isinstance(told[-1].error, GrammarDeadEndError)
    assert fine[-1].finish_reason == "length"


class Broken(ScriptedTarget):
    def forward(self, rows: list[Row]) -> Output:  # type: ignore[override]
        raise RuntimeError("device lost")


def test_failing_ends_running_and_waiting_requests_with_the_error() -> None:
    core = core_of(counting(), max_running=1)
    told: list[Event] = []
    for _ in range(2):
        core.add(Order(prompt=[1], params=SamplingParams(seed=0), listener=told.append))
    core.step()
    core.fail(EngineError("device lost"))
    assert [event.finish_reason for event in told[1:]] == ["error", "error"]
    assert core.idle


@pytest.mark.parametrize(
    ("prompt", "error", "words"),
    [
        ([], PromptError, "the prompt is empty"),
        ([1] * 64, PromptTooLongError, "64 tokens and the model's context holds 64: shorten it by at least 1"),
        ([1, 10], PromptError, "token id 10 of the prompt is outside the vocabulary of 10"),
        ([-1], PromptError, "token id -1"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused_before_it_costs(
    prompt: list[int], error: type[Exception], words: str
) -> None:
    target = counting()
    with pytest.raises(error, match=words):
        core_of(target).add(order(prompt))
    assert target.forwards == 0


@pytest.mark.parametrize("params", [{"stop_token_ids": [10]}, {"logit_bias": {10: 1}}, {"bad_words": [(1, 10)]}])
def test_a_parameter_that_names_an_id_outside_the_vocabulary_is_refused(params: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(params))} names token id 10, which is outside"):
        core_of(counting()).add(order([1], **params))


class Full(ScriptedTarget):
    """Has memory for one slot."""

    def open(self) -> TokenSlot:
        if self.slots:
            raise RuntimeError("out of memory")
        return super().open()


def test_a_request_that_cannot_start_is_told_and_the_others_go_on() -> None:
    target = Full(lambda tokens: {len(tokens) % 8: 5.0}, vocab_size=10)
    core, told, fine = core_of(target), list[Event](), list[Event]()
    core.add(Order(prompt=[1], params=SamplingParams(seed=0, max_tokens=3), listener=fine.append))
    core.step()
    core.add(Order(prompt=[2], params=SamplingParams(seed=0), listener=told.append))
    while not core.idle:
        core.step()
    assert "out of memory" in str(told[-1].error)
    assert fine[-1].finish_reason == "length"


class Meddling(ScriptedProposer):
    def propose(self, contexts: list[Context]) -> list[Draft]:  # type: ignore[override]
        for context in contexts:
            context.tokens.append(7)  # type: ignore[attr-defined]
        return [Draft.chain([3.0, 4.0], "x", float("nan")) for _ in contexts]  # type: ignore[list-item]


def test_a_proposer_can_neither_change_the_tokens_nor_pass_on_what_is_none() -> None:
    for proposer in (Meddling(), ProposerPool([Meddling()])):
        (answer,) = run(counting(), proposer, order([1, 2, 3], max_tokens=4))
        assert answer.tokens == (3, 4, 5, 6)


def test_an_order_without_a_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed"):
        core_of(counting()).add(Order(prompt=[1], params=SamplingParams()))


def test_logprobs_come_one_for_each_token() -> None:
    (answer,) = run(tiny_target(), ScriptedProposer([1, 2]), order([3, 4], max_tokens=5, logprobs=2))
    details = [detail for event in answer.events for detail in event.logprobs]
    assert [detail.token for detail in details] == list(answer.tokens)
    assert all(len(detail.top) == 2 and detail.logprob <= 0 for detail in details)
    assert all(detail.logprob == max(detail.top.values()) for detail in details)  # greedy
