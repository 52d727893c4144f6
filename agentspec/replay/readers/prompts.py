"""Plain prompts: `{"turns", "category"}`.

Source: lm-sys/FastChat, the questions of MT-bench, and benchmarks like it. No answer of a model is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentspec.errors import TraceError
from agentspec.replay.categories import of_name
from agentspec.replay.readers.base import Format, Record, has_keys, rows
from agentspec.replay.readers.tasks import task
from agentspec.replay.turns import Turn


def read(record: Record) -> Iterator[Turn]:
    """The first of the user's texts: later ones follow on answers that are not recorded.

    Raises:
        TraceError: The row can't be used.
    """
    turns = record.value["turns"]
    if not isinstance(turns, list) or not turns or not isinstance(turns[0], str) or not turns[0].strip():
        raise TraceError("turns is not a list that begins with a text")
    yield task(record, ({"role": "user", "content": turns[0]},), of_name(record.value["category"]))


FORMAT = Format(
    "prompts", "plain prompts, such as MT-bench's", "turns and category", has_keys("turns", "category"), rows(read)
)
