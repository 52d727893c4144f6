"""The benchmark's prompts: written for it, never tuned to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agentspec.errors import ConfigError

CATEGORIES = {
    "tool": "required tool call",
    "rewrite": "rewriting a file",
    "json": "JSON by schema",
    "prose": "free prose",
}
"""What a coding agent writes, by the name that commands take."""


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt.

    Attributes:
        messages: In OpenAI's form.
        tools: One of them must be called, where there are any.
        json_schema: Of the answer.
    """

    name: str
    category: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    json_schema: Mapping[str, Any] | None = None

    @property
    def held(self) -> bool:
        """Whether a grammar holds the answer, so that free decoding writes another one."""
        return bool(self.tools) or self.json_schema is not None


def read_tasks(categories: Sequence[str] = tuple(CATEGORIES), each: int | None = None) -> list[Task]:
    """The prompts of some categories: all of each, or the first so many.

    Raises:
        ConfigError: There is no such category.
    """
    for category in categories:
        if category not in CATEGORIES:
            raise ConfigError(f"no tasks are called {category!r}; there are: {', '.join(CATEGORIES)}")
    data = json.loads((files("agentspec.bench") / "tasks.json").read_text(encoding="utf-8"))
    texts = {name: "\n".join(lines) for name, lines in data["files"].items()}
    listed = {category: [task for task in data["tasks"] if task["category"] == category] for category in CATEGORIES}
    return [
        _read(task, texts, data["tools"])
        for category in CATEGORIES
        if category in categories
        for task in listed[category][:each]
    ]


def _read(task: Mapping[str, Any], texts: Mapping[str, str], tools: Sequence[Mapping[str, Any]]) -> Task:
    return Task(
        name=task["name"],
        category=task["category"],
        messages=tuple({**each, "content": _filled(each["content"], texts)} for each in task["messages"]),
        tools=tuple(tools) if task["category"] == "tool" else (),
        json_schema=task.get("json_schema"),
    )


def _filled(content: str, texts: Mapping[str, str]) -> str:
    for name, text in texts.items():
        content = content.replace("{{" + name + "}}", text)
    return content
