"""A tokenizer's own chat template, asked with care: what it knows of tools, and prompts that no message can break."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from agentspec.chat.calls import Written
from agentspec.chat.formats.base import ToolFormat
from agentspec.chat.messages import fold_turns
from agentspec.errors import PromptError, check_text
from agentspec.grammar.tools import Tool
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

To call a function, write {syntax}"""

_PROBE = Written("probe_call", {"key": "value"})
_PROBE_ID = "probe0001"  # nine letters and digits: all that Mistral's templates take


class Templated(Protocol):
    """What is read of a tokenizer to render a chat."""

    @property
    def chat_template(self) -> object:
        """Its chat template; None if it has none."""

    def apply_chat_template(self, conversation: list[dict[str, Any]], **options: Any) -> Any:  # noqa: ANN401
        """The conversation as text."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """The tokens of a text, control tokens' names read as control tokens."""


class Template:
    """Renders by the tokenizer's own chat template.

    What the template would leave out is rendered as text: tools in the system turn, calls and results in the turns.
    Where there is no template, each turn is a line `role: text`, and `assistant:` starts the answer.
    """

    def __init__(self, tokenizer: Templated, vocabulary: Vocabulary) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._arguments = cache(self._find_arguments)

    @property
    def source(self) -> str:
        """The template's own text; empty where there is none, all of them where there are several."""
        template = self._tokenizer.chat_template
        return "" if template is None else template if isinstance(template, str) else json.dumps(template)

    def knows(self, form: ToolFormat) -> bool:
        """Whether it shows tools, results, and calls in just this format."""
        return not form.described and self._arguments(form) is not None

    def render(self, turns: _Turns, tools: Sequence[Tool], form: ToolFormat) -> list[int]:
        """The prompt's tokens; control tokens' names in turns are text.

        Raises:
            PromptError: The template refuses the turns, or something in them is not text.
        """
        text = self._text(self._guard(turns), tools, form)
        check_text(text, "the prompt, as the chat template writes it,", PromptError)
        first, *parts = text.split(_GUARD)
        tokens = self._tokenizer.encode(first, add_special_tokens=self._tokenizer.chat_template is None)
        return [*tokens, *(token for part in parts for token in self._encode(part))]

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _guard(self, value: Any) -> Any:  # noqa: ANN401 (JSON)
        """`value` with every control token's name in its texts broken up."""
        if isinstance(value, str):
            return _GUARD.join(self._vocabulary.apart(value))
        if isinstance(value, Mapping):
            return {key: self._guard(item) for key, item in value.items()}
        return [self._guard(item) for item in value] if isinstance(value, list) else value

    def _text(self, turns: _Turns, tools: Sequence[Tool], form: ToolFormat) -> str:
        if self._tokenizer.chat_template is None:
            return _lines(_written_out(turns, tools, form))
        written = _written_out(turns, tools, form)
        own = self._arguments(form) if self.knows(form) else None
        shapes = [
            (written, ()) if own is None else (form.prepare(_shaped(turns, own)), tools),
            (fold_turns(written, system=True), ()),
            (fold_turns(written, system=False), ()),
        ]
        refusal: Exception | None = None
        for shape in shapes:
            try:
                return self._apply(*shape)
            except Exception as error:  # a template is foreign code, and may raise anything
                refusal = refusal or error
        raise PromptError(
            f"the chat template refuses messages[0..{len(turns) - 1}]: {' '.join(str(refusal).split())}"
        ) from refusal

    def _apply(self, turns: _Turns, tools: Sequence[Tool]) -> str:
        definitions = [self._guard(tool.definition) for tool in tools] or None
        text: str = self._tokenizer.apply_chat_template(
            turns, tools=definitions, add_generation_prompt=True, tokenize=False
        )
        return text

    def _find_arguments(self, form: ToolFormat) -> _Arguments | None:
        """How the template wants arguments so that it shows calls in this format; None if it doesn't in any way."""
        if self._tokenizer.chat_template is None:
            return None
        return next((shape for shape in (_as_mapping, _as_text) if self._shows(form, shape)), None)

    def _shows(self, form: ToolFormat, shape: _Arguments) -> bool:
        function = {"name": _PROBE.name, "arguments": _PROBE.arguments}
        turns: _Turns = [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "", "tool_calls": [_call(_PROBE_ID, function)]},
            {"role": "tool", "content": "probe_result", "name": _PROBE.name, "tool_call_id": _PROBE_ID},
        ]
        try:
            text = self._apply(form.prepare(_shaped(turns, shape)), [Tool("probe_tool", "", {"type": "object"})])
        except Exception:  # likewise
            return False
        return "probe_tool" in text and "probe_result" in text and form.shows(text, _PROBE)


_Arguments = Callable[[object], object]


def _as_mapping(arguments: object) -> object:
    return arguments


def _as_text(arguments: object) -> object:
    return json.dumps(arguments, ensure_ascii=False)


def _call(call_id: str, function: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": dict(function)}


def _shaped(turns: _Turns, shape: _Arguments) -> _Turns:
    """The turns with the arguments of calls as the template wants them."""
    return [
        {**turn, "tool_calls": [_with_arguments(call, shape) for call in turn["tool_calls"]]}
        if turn.get("tool_calls")
        else dict(turn)
        for turn in turns
    ]


def _with_arguments(call: Mapping[str, Any], shape: _Arguments) -> dict[str, Any]:
    function = call["function"]
    return {**call, "function": {**function, "arguments": shape(function["arguments"])}}


def _lines(turns: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{turn['role']}: {turn['content']}\n" for turn in turns) + "assistant:"


def _written_out(turns: _Turns, tools: Sequence[Tool], form: ToolFormat) -> _Turns:
    """The turns with tools, calls and results as text, for a template that would leave them out."""
    written: _Turns = []
    for index, turn in enumerate(turns):
        text = _as_turn(turn, form)
        if index and turn["role"] == turns[index - 1]["role"] == "tool":
            written[-1]["content"] += "\n" + text["content"]
        else:
            written.append(text)
    if not tools:
        return written
    if written[0]["role"] != "system":
        written.insert(0, {"role": "system", "content": _NO_SYSTEM})
    listed = "\n".join(json.dumps(tool.definition, ensure_ascii=False) for tool in tools)
    written[0]["content"] += _HOW_TO_CALL.format(tools=listed, syntax=form.syntax)
    return written


def _as_turn(turn: Mapping[str, Any], form: ToolFormat) -> dict[str, Any]:
    if turn["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{turn['content']}\n</tool_response>"}
    functions = [call["function"] for call in turn.get("tool_calls", ())]
    calls = form.write([Written(each["name"], each["arguments"]) for each in functions]) if functions else ""
    return {"role": turn["role"], "content": "\n".join(filter(None, (turn["content"], calls)))}
