"""From what a caller asks, in text, to what the engine core takes, in tokens."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from agentspec.chat.chat import Chat
from agentspec.chat.parser import TextParser
from agentspec.chat.stream import StopRule, TextStream
from agentspec.config import SamplingParams
from agentspec.engine.request import Order
from agentspec.errors import ConfigError, PromptError, check_text
from agentspec.grammar.base import Guide
from agentspec.grammar.code_names import code_names
from agentspec.grammar.either import Either
from agentspec.grammar.free_calls import free_calls
from agentspec.grammar.llg import LlgGuide, lark_guide, regex_guide
from agentspec.grammar.output_type import OutputType, output_guide, writes_json
from agentspec.grammar.schema import Schema, Whitespace, schema_guide
from agentspec.grammar.tools import Tool, ToolChoice, read_tools
from agentspec.grammar.track import TrackedGuide
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.local.reader import Reader
from agentspec.segmenter import Segmenter

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]


class Options(TypedDict, total=False):
    """What may be asked of an answer beside its prompt and sampling.

    Attributes:
        output_type: Hold the output to a Python type, or a JSON Schema as text: a pydantic model, dataclass, TypedDict,
            `Literal`, `Enum`, `list[int]`, outlines' `Regex`, ...; all that outlines takes.
        json_schema: Hold the output to a JSON Schema, or to a pydantic model class.
        regex: Hold it to a regular expression, as a whole.
        lark: Hold it to a grammar in llguidance's dialect of Lark.
        json_whitespace: White space in a JSON document: "fixed" (the default) or "bounded"; see `Whitespace`.
        tools: OpenAI tools that the model may call.
        tool_choice: "auto" (the default), "required", "none", a tool's name, or OpenAI's object that names one. Where
            the output is held to something beside tools, "auto" leaves the choice between calls and that, and nothing
            else; where calls are asked for, only they are held, and under "none" only the other.
        parallel_tool_calls: Whether it may call more than one at once; default True.
        speculate: Overrides the engine's own setting; never changes a token.
        caller: Whose request it is: what one caller's answers taught is not used for another. Default: "".
        prediction: Text that the answer is expected to resemble, such as the file that is to be changed: drafts follow
            it as far as the answer does. Default: "".
        rounds: Whether the result tells what each round did; default False.
    """

    output_type: OutputType
    json_schema: Schema | None
    regex: str | None
    lark: str | None
    json_whitespace: Whitespace
    tools: Sequence[Mapping[str, Any]] | None
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    speculate: bool | None
    caller: str
    prediction: str
    rounds: bool


_HELD_TO = ("output_type", "json_schema", "regex", "lark")
_ENCODED = ("regex", "lark", "prediction")
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "regex": (str, "a text"),
    "lark": (str, "a text"),
    "json_whitespace": (str, '"fixed" or "bounded"'),
    "tools": ((list, tuple), "a list of OpenAI tools"),
    "parallel_tool_calls": (bool, "True or False"),
    "speculate": (bool, "True or False"),
    "caller": (str, "a text"),
    "prediction": (str, "a text"),
    "rounds": (bool, "True or False"),
}


@dataclass(frozen=True, slots=True)
class Ask:
    """What a caller asks for; see `Engine.generate` and `Options`."""

    prompt: Prompt
    params: SamplingParams
    options: Options

    def __post_init__(self) -> None:
        for name, value in self.options.items():
            if name in SamplingParams.__dataclass_fields__:
                raise ConfigError(f"{name} is a sampling parameter: give it as SamplingParams({name}=...)")
            if name not in Options.__annotations__:
                raise ConfigError(f"no option is called {name!r}; there are: {', '.join(Options.__annotations__)}")
            kind, words = _KINDS.get(name, (object, ""))
            if value is not None and not isinstance(value, kind):
                raise ConfigError(f"{name} must be {words}, not {value!r}")
            if name in _ENCODED and isinstance(value, str):
                check_text(value, name)
        if not isinstance(self.params, SamplingParams):
            raise ConfigError(f"params must be SamplingParams, not {type(self.params).__name__}")

    @property
    def tool_choice(self) -> ToolChoice:
        """What the caller wants called."""
        return self.options.get("tool_choice", "auto")


class Asker:
    """Reads asks for one model.

    Args:
        tokenizer: Splits prompts.
        vocabulary: Of the same model.
        chat: Renders messages.
    """

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary, chat: Chat) -> None:  # noqa: ANN401
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._chat = chat

    def read(self, ask: Ask) -> tuple[list[Order], list[Reader]]:
        """An order for each of the `n` answers, and what reads its events. Nothing heavy is done yet.

        Raises:
            PromptError: The prompt can't be used.
            GrammarError: What the output is held to can't be enforced.
            ConfigError: The ask contradicts itself.
        """
        tools = read_tools(ask.options.get("tools") or ())
        prompt = self.tokens(ask.prompt, tools, ask.tool_choice)
        chat = self._is_chat(ask, tools)
        opened, visible = chat and self._chat.opened(prompt), self._chat.visible if chat else ()
        guide = self._guide(ask, tools, opened=opened)
        params = self._params(ask.params)
        prediction = tuple(self._vocabulary.encode(ask.options.get("prediction") or ""))
        orders = [
            Order(
                prompt=prompt,
                params=params,
                guide=guide,
                stop_rule=StopRule(self._vocabulary, params.stop, min_tokens=params.min_tokens, visible=visible),
                speculate=bool(ask.options.get("speculate", True)),
                branch=branch,
                caller=ask.options.get("caller") or "",
                prediction=prediction,
            )
            for branch in range(params.n)
        ]
        return orders, [self._reader(order, ask, tools, opened=opened) for order in orders]

    def tokens(self, prompt: Prompt, tools: Sequence[Tool] = (), tool_choice: ToolChoice = "auto") -> list[int]:
        """The prompt's tokens. A string is taken as it is, but as a user's message where there are tools to show."""
        if isinstance(prompt, bytes):
            raise PromptError("the prompt is bytes: decode it to text, or give a list of token ids")
        if isinstance(prompt, str):
            check_text(prompt, "the prompt", PromptError)
        if isinstance(prompt, str) and not tools:
            return list(self._tokenizer.encode(prompt, add_special_tokens=True))
        if isinstance(prompt, str):
            return self._chat.render([{"role": "user", "content": prompt}], tools, tool_choice)
        if not isinstance(prompt, Sequence) or not prompt:
            raise PromptError(f"the prompt must be a string, token ids or messages, at least one, not {prompt!r}")
        if all(isinstance(item, Mapping) for item in prompt):
            return self._chat.render([item for item in prompt if isinstance(item, Mapping)], tools, tool_choice)
        for place, item in enumerate(prompt):
            if not isinstance(item, int) or isinstance(item, bool):
                raise PromptError(f"prompt[{place}] must be a token id, like the rest, not {item!r}")
        return [item for item in prompt if isinstance(item, int)]

    def _is_chat(self, ask: Ask, tools: Sequence[Tool]) -> bool:
        """Whether the answer is a message of a model's, not just text that goes on from a text."""
        return bool(tools) or (
            not isinstance(ask.prompt, str) and all(isinstance(each, Mapping) for each in ask.prompt)
        )

    def spell(self, token: int, *, control: bool = True) -> bytes:
        """A token's text as bytes, not always whole characters; a control token's name, or nothing if not `control`."""
        return self._vocabulary.spelled(token) if control else self._vocabulary.text(token)

    def _guide(self, ask: Ask, tools: Sequence[Tool], *, opened: bool) -> Guide:
        """What the answer is held to: under tool choice "auto" and something beside tools, to calls or to that."""
        parallel = ask.options.get("parallel_tool_calls", True)
        held_to = self._held_to(ask)
        calls = bool(tools) and ask.tool_choice != "none"
        if held_to is None or (calls and ask.tool_choice != "auto"):
            guide = self._chat.guide(tools, ask.tool_choice, parallel=parallel, opened=opened)
            return self._tracked(guide, ask, tools, opened=opened, called=calls and ask.tool_choice != "auto")
        chat = self._is_chat(ask, tools)
        text = self._chat.held_to(held_to, opened=opened, thoughts=calls) if chat else held_to
        tracked = self._tracked(text, ask, tools, opened=opened, held=True)
        if not calls:
            return tracked
        called = self._chat.guide(tools, "required", parallel=parallel, opened=opened)
        return Either(self._tracked(called, ask, tools, opened=opened, called=True), tracked)

    def _held_to(self, ask: Ask) -> LlgGuide | None:
        """What the ask holds the output to beside tools."""
        given = [name for name in _HELD_TO if ask.options.get(name) is not None]
        if len(given) > 1:
            raise ConfigError(f"the output can be held to one thing, not to {' and '.join(given)}: leave one out")
        whitespace = ask.options.get("json_whitespace", "fixed")
        if "json_whitespace" in ask.options and not {"output_type", "json_schema"} & set(given):
            raise ConfigError("json_whitespace goes with json_schema or output_type, and neither is given")
        if (output_type := ask.options.get("output_type")) is not None:
            return output_guide(self._vocabulary, output_type, whitespace=whitespace)
        if (schema := ask.options.get("json_schema")) is not None:
            return schema_guide(self._vocabulary, schema, whitespace=whitespace)
        if (regex := ask.options.get("regex")) is not None:
            return regex_guide(self._vocabulary, regex)
        if (lark := ask.options.get("lark")) is not None:
            return lark_guide(self._vocabulary, lark)
        return None

    def _tracked(
        self,
        guide: Guide,
        ask: Ask,
        tools: Sequence[Tool],
        *,
        opened: bool,
        held: bool = False,
        called: bool = False,
    ) -> TrackedGuide:
        """The guide with cursors that know where in the answer they are; it is `held` to a text, or to be calls."""
        output_type = ask.options.get("output_type")
        typed = output_type is not None and writes_json(output_type)
        segmenter = Segmenter(
            calls=self._chat.form.marks,
            reasoning=self._chat.thoughts,
            frames=self._chat.form.frames if self._is_chat(ask, tools) else (),
            document=held and (typed or ask.options.get("json_schema") is not None),
            called=called,
            code_names=code_names(tool.parameters for tool in tools),
        )
        guesses = () if held or called else free_calls(self._vocabulary, tools)
        return TrackedGuide(
            guide, self._vocabulary, segmenter, start=segmenter.start(reasoning=opened), guesses=guesses
        )

    def _params(self, params: SamplingParams) -> SamplingParams:
        seed = secrets.randbits(63) if params.seed is None else params.seed
        words = [word for each in params.bad_words for word in self._spellings(each)]
        return replace(params, seed=seed, bad_words=tuple(dict.fromkeys(words)))

    def _spellings(self, word: str | tuple[int, ...]) -> list[tuple[int, ...]]:
        if not isinstance(word, str):
            return [word]
        return [tuple(self._vocabulary.encode(spelling)) for spelling in (word, " " + word.lstrip())]

    def _reader(self, order: Order, ask: Ask, tools: Sequence[Tool], *, opened: bool) -> Reader:
        chat = self._is_chat(ask, tools)
        held = ask.tool_choice == "auto" and any(ask.options.get(name) is not None for name in _HELD_TO)
        parser = self._chat.parser(tools, ask.tool_choice, opened=opened, held=held) if chat else TextParser()
        text = TextStream(
            self._vocabulary,
            stops=order.params.stop,
            min_tokens=order.params.min_tokens,
            visible=self._chat.visible if chat else (),
        )
        ends = self._vocabulary.eos | set(order.params.stop_token_ids)
        return Reader(order, parser, text, ends, rounds=ask.options.get("rounds", False))
