"""A report as JSON: what `agentspec replay --json` prints, and `--json-schema` describes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float | None, Field(ge=0, description="Null where no cost of a forward is known.")]
Joules = Annotated[float | None, Field(ge=0, description="Of the whole machine; null where it tells none.")]
Ratio = Annotated[float | None, Field(ge=0, description="Null where there is nothing to divide by.")]
Held = Literal["required", "auto", "schema", "regex", "lark", "free"]
"""What an answer was held to: calls, or calls if it likes, a schema, a regular expression, a grammar, or nothing."""

Interval = Annotated[tuple[float, float] | None, Field(description="Lowest and highest; null where it isn't known.")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Accepted(_Part):
    """Draft nodes that were verified, those that were accepted, and their ratio."""

    drafted: Count
    accepted: Count
    rate: Annotated[float, Field(ge=0, le=1)]


class InSegment(_Part):
    """What happened in one kind of text; forwards count where their first token stands."""

    tokens: Count
    forwards: Count
    drafted: Count
    accepted: Count
    tokens_per_forward: Ratio


class FixedTurn(_Part):
    """A turn answered with a fixed budget; `relative`: its seconds by the adaptive answer's."""

    forwards: Count
    seconds: float
    relative: Ratio
    by_source: dict[str, Accepted]


class FixedSum(_Part):
    """Turns answered with a fixed budget."""

    forwards: Count
    tokens_per_forward: Ratio
    seconds: float


class Budgets(_Part):
    """Fixed budgets beside the adaptive one."""

    fixed: dict[str, FixedSum]
    best: int
    adaptive_to_best: Ratio
    median_adaptive_to_best: Ratio


class TurnRow(_Part):
    """One turn; nothing of its text."""

    trace_id: str
    index: Count
    digest: Annotated[str, Field(description="The same for the same turn in another report.")]
    number: Annotated[int, Field(ge=1, description="Which of its conversation's turns.")]
    category: str
    repeat: bool
    approximate: bool
    held: Held
    loosened: bool
    prompt_tokens: Count
    tokens: Count
    forwards: Count
    plain_forwards: Count
    seconds: Seconds
    plain_seconds: Seconds
    prefill_seconds: Seconds
    speedup: Ratio
    joules: Joules
    plain_joules: Joules
    identical: Annotated[bool | None, Field(description="Null where nothing was compared: without a model.")]
    finish_reason: str
    by_source: dict[str, Accepted]
    by_segment: dict[str, InSegment]
    by_depth: list[Accepted]
    fixed: dict[str, FixedTurn]


class Sums(_Part):
    """Over several turns."""

    turns: Count
    tokens: Count
    forwards: Count
    plain_forwards: Count
    tokens_per_forward: Ratio
    seconds: Seconds
    plain_seconds: Seconds
    speedup: Annotated[float | None, Field(description="Ratio of the sums.")]
    median_speedup: Annotated[float | None, Field(description="Median of the turns' own.")]
    joules: Joules
    plain_joules: Joules
    identical: bool | None
    budgets: Budgets | None


class Total(Sums):
    """Over all turns."""

    speedup_interval: Interval
    skipped: Count
    repeats: Count
    approximate: Count
    loosened: Annotated[int, Field(ge=0, description="Answers that could not have been written as was asked.")]
    prefill_seconds: Seconds
    drafting_seconds: Annotated[float, Field(ge=0, description="By the clock of the machine that made the report.")]


class Left(_Part):
    """What could not be used; `line` 0: the whole file."""

    file: str
    line: Count
    index: int | None = None
    reason: str


class Cost(_Part):
    """What a forward costs: milliseconds for one token, 0 if only the shape is believed, and relative by width."""

    name: str
    computed: bool
    base_ms: float
    relative: dict[str, float]


class Setup(_Part):
    """How the report was made."""

    mode: Literal["live", "oracle"]
    agentspec: str
    model: Annotated[str, Field(description="Live: the model. Oracle: the tokenizer.")]
    draft: str | None
    max_tokens: int | None
    runs: Count
    history: bool
    budget: Annotated[int | None, Field(description="Oracle: a fixed one.")]
    cost: Cost | None
    device: dict[str, str | int | float | None]


class Advice(_Part):
    """Something to change, and the figure that it rests on."""

    kind: str
    text: str
    figure: float


class ReplayReport(_Part):
    """What a replay found."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="agentspec replay report")

    format: Literal["agentspec-replay-report"] = "agentspec-replay-report"
    version: Literal[1] = 1
    setup: Setup
    total: Total
    without_repeats: Sums
    by_category: dict[str, Sums]
    by_category_without_repeats: dict[str, Sums]
    by_source: dict[str, Accepted]
    by_segment: dict[str, InSegment]
    by_depth: list[Accepted]
    advice: list[Advice]
    turns: list[TurnRow]
    skipped: list[Left]
    interrupted: bool
