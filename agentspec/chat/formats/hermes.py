"""The Hermes way of writing tool calls, which Qwen and Hermes models learned and others follow when told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from agentspec.chat.base import MessageParser
from agentspec.chat.formats.hermes_parser import HermesParser, new_call_id
from agentspec.chat.formats.plain_parser import PlainParser
from agentspec.chat.messages import fold_turns, read_messages
from agentspec.errors import ConfigError, PromptError
from agentspec.grammar.base import Guide
from agentspec.grammar.schema import Schema, schema_guide
from agentspec.grammar.tools import CLOSE, OPEN, Tool, ToolChoice, tool_guide
from agentspec.grammar.vocabulary import Vocabulary

_GUARD = "\ufdd0"
"""Put into control tokens' names in messages, so that they are encoded as text; Unicode promises it is never a
character."""

_Turns = list[dict[str, Any]]

_NO_SYSTEM = "You are a helpful assistant."
_HOW_TO_CALL = """

# Tools

You can call functions to help with the user's request. Their signatures are within <tools></tools>:
<tools>
{tools}
</tools>

To call a function, write a JSON object with its name and arguments within {open}{close}:
{open}
{{"name": <function name>, "arguments": <arguments as a JSON object>}}
{close}"""


class Templated(Protocol):
    """What is read of a tokenizer to render a chat."""

    @property
    def chat_template(self) -> object:
        """Its chat template; None if it has none."""

    def apply_chat_template(self, conversation: list[dict[str, Any]], **options: Any) -> Any:  # noqa: ANN401
        """The conversation as text."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """The tokens of a text, control tokens' names read as control tokens."""


class HermesFormat:
    """Renders by the tokenizer's own chat template, guides and parses `<tool_call>` JSON.

    Where the template ignores tools, they are described in the system turn, and earlier calls and results are rendered
    as text in the same form. Where there is no template, each turn is a line `role: text`, and `assistant:` starts the
    answer. Names of control tokens in messages are plain text.
    """

    markers = (OPEN, CLOSE)

    def __init__(self, tokenizer: Templated, vocabulary: Vocabulary) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool] = (), tool_choice: ToolChoice = "auto"
    ) -> list[int]:
        """The prompt, up to where the assistant's answer begins. Under `"none"` it does not speak of tools.

        Raises:
            PromptError: A message can't be used, or the template refuses them; the text names `messages[i]`.
        """
        turns: list[dict[str, Any]] = self._guard(read_messages(messages))
        first, *parts = self._text(turns, () if tool_choice == "none" else tools).split(_GUARD)
        tokens = self._tokenizer.encode(first, add_special_tokens=self._tokenizer.chat_template is None)
        return [*tokens, *(token for part in parts for token in self._encode(part))]

    def guide(
        self,
        tools: Sequence[Tool] = (),
        tool_choice: ToolChoice = "auto",
        *,
        schema: Schema | None = None,
        parallel: bool = True,
    ) -> Guide:
        """What the answer is held to: the tools, or a schema.

        Raises:
            ConfigError: Both are asked for, or a tool that isn't there.
            GrammarError: A schema can't be enforced.
        """
        if schema is None:
            return tool_guide(self._vocabulary, tools, tool_choice, parallel=parallel)
        if tools and tool_choice != "none":
            raise ConfigError("an answer is held to a JSON schema or may call tools, not both: leave one of them out")
        return schema_guide(self._vocabulary, schema)

    def parser(
        self,
        tools: Sequence[Tool] = (),
        tool_choice: ToolChoice = "auto",
        *,
        call_id: Callable[[], str] = new_call_id,
    ) -> MessageParser:
        """A parser for one answer. Without tools to call, or under `"none"`, all of it is text."""
        return HermesParser(call_id=call_id) if tools and tool_choice != "none" else PlainParser()

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _guard(self, value: Any) -> Any:  # noqa: ANN401 (JSON)
        """`value` with every control token's name in its texts broken up."""
        if isinstance(value, str):
            return _GUARD.join(self._vocabulary.apart(value))
        if isinstance(value, Mapping):
            return {key: self._guard(item) for key, item in value.items()}
        return [self._guard(item) for item in value] if isinstance(value, list) else value

    def _text(self, turns: list[dict[str, Any]], tools: Sequence[Tool]) -> str:
        if self._tokenizer.chat_template is None:
            return _lines(_written_out(turns, tools))
        if not self._knows_tools:
            turns, tools = _written_out(turns, tools), ()
        refusal: Exception | None = None
        for shape in (_as_they_are, _folded, _folded_without_system):
            try:
                return self._apply(*shape(turns, tools))
            except Exception as error:  # a template is foreign code, and may raise anything
                refusal = refusal or error
        raise PromptError(
            f"the chat template refuses messages[0..{len(turns) - 1}]: {' '.join(str(refusal).split())}"
        ) from refusal

    def _apply(self, turns: list[dict[str, Any]], tools: Sequence[Tool]) -> str:
        definitions = [self._guard(tool.definition) for tool in tools] or None
        text: str = self._tokenizer.apply_chat_template(
            turns, tools=definitions, add_generation_prompt=True, tokenize=False
        )
        return text

    @cached_property
    def _knows_tools(self) -> bool:
        """Whether the template shows tools, results, and calls in just this format."""
        call: dict[str, Any] = {"type": "function", "function": {"name": "probe_call", "arguments": {"key": "value"}}}
        turns: _Turns = [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "probe_result", "name": "probe_call"},
        ]
        try:
            text = self._apply(turns, [Tool("probe_tool", "", {})])
        except Exception:  # a template is foreign code, and may raise anything
            return False
        return all(word in text for word in ("probe_tool", "probe_result", _call_text(call["function"])))


def _as_they_are(turns: _Turns, tools: Sequence[Tool]) -> tuple[_Turns, Sequence[Tool]]:
    return turns, tools


def _folded(turns: _Turns, tools: Sequence[Tool]) -> tuple[_Turns, Sequence[Tool]]:
    return fold_turns(_written_out(turns, tools), system=True), ()


def _folded_without_system(turns: _Turns, tools: Sequence[Tool]) -> tuple[_Turns, Sequence[Tool]]:
    return fold_turns(_written_out(turns, tools), system=False), ()


def _lines(turns: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{turn['role']}: {turn['content']}\n" for turn in turns) + "assistant:"


def _written_out(turns: Sequence[Mapping[str, Any]], tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The turns with tools, calls and results as text, for a template that would leave them out."""
    written: list[dict[str, Any]] = []
    for index, turn in enumerate(turns):
        text = _as_text(turn)
        if index and turn["role"] == turns[index - 1]["role"] == "tool":
            written[-1]["content"] += "\n" + text["content"]
        else:
            written.append(text)
    if not tools:
        return written
    if written[0]["role"] != "system":
        written.insert(0, {"role": "system", "content": _NO_SYSTEM})
    listed = "\n".join(json.dumps(tool.definition, ensure_ascii=False) for tool in tools)
    written[0]["content"] += _HOW_TO_CALL.format(tools=listed, open=OPEN, close=CLOSE)
    return written


def _as_text(turn: Mapping[str, Any]) -> dict[str, Any]:
    if turn["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{turn['content']}\n</tool_response>"}
    calls = [_call_text(call["function"]) for call in turn.get("tool_calls", ())]
    return {"role": turn["role"], "content": "\n".join(filter(None, (turn["content"], *calls)))}


def _call_text(function: Mapping[str, Any]) -> str:
    call = {"name": function["name"], "arguments": function["arguments"]}
    return f"{OPEN}\n{json.dumps(call, ensure_ascii=False)}\n{CLOSE}"
