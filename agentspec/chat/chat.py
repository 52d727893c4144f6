"""A model's chats: messages to prompts, tools to guides, answers to messages, all in the format it learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from agentspec.chat.base import MessageParser
from agentspec.chat.formats.base import ToolFormat
from agentspec.chat.formats.registry import choose
from agentspec.chat.messages import read_messages
from agentspec.chat.parser import AnswerParser
from agentspec.chat.template import Template, Templated
from agentspec.grammar.base import FREE, Guide
from agentspec.grammar.files import read_grammar
from agentspec.grammar.llg import LlgGuide
from agentspec.grammar.reasoned import Reasoned, Reasoning
from agentspec.grammar.spelling import Spelling
from agentspec.grammar.tools import Tool, ToolChoice, chosen, compile_calls
from agentspec.grammar.until import Resumable, UntilCall
from agentspec.grammar.vocabulary import Vocabulary

_LOOK_BACK = 16


class Chat:
    """Renders, guides and parses for one model.

    Attributes:
        form: How tool calls are written.
    """

    def __init__(self, tokenizer: Templated, vocabulary: Vocabulary, *, tool_format: str | None = None) -> None:
        """For the model of this tokenizer.

        Args:
            tokenizer: With its chat template.
            vocabulary: Of the same model.
            tool_format: A name in `FORMATS`; None: what the template shows.

        Raises:
            ConfigError: No format has the name.
        """
        self._template = Template(tokenizer, vocabulary)
        self._vocabulary = vocabulary
        self.form: ToolFormat = choose(self._template, tool_format)
        self._spelling = Spelling(vocabulary, self.form.markers)

    @cached_property
    def reasoning(self) -> Reasoning | None:
        """How the model sets its thoughts apart; None if neither its template nor its vocabulary knows the markers."""
        reasoning = self.form.reasoning
        if reasoning is None:
            return None
        close = reasoning.close
        known = close in self._template.source or close.encode() in self._vocabulary.tokens
        return reasoning if known or self._vocabulary.control(close) is not None else None

    @property
    def thoughts(self) -> tuple[str, str]:
        """The texts around thoughts; empty where the model has none."""
        return (self.reasoning.open, self.reasoning.close) if self.reasoning else ("", "")

    @property
    def visible(self) -> tuple[str, ...]:
        """Names of control tokens that the parser must see."""
        return tuple(self._spelling.controls.values())

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool] = (), tool_choice: ToolChoice = "auto"
    ) -> list[int]:
        """The prompt, up to where the assistant's answer begins. Under `"none"` it does not speak of tools.

        Raises:
            PromptError: A message can't be used, or the template refuses them; the text names `messages[i]`.
        """
        return self._template.render(read_messages(messages), () if tool_choice == "none" else tools, self.form)

    def opened(self, prompt: Sequence[int]) -> bool:
        """Whether the prompt ends with the marker that opens thoughts, so that the answer begins within them."""
        if self.reasoning is None:
            return False
        last = b"".join(self._spelling.text(token) for token in prompt[-_LOOK_BACK:])
        return last.rstrip().endswith(self.reasoning.open.strip().encode())

    def guide(
        self,
        tools: Sequence[Tool] = (),
        tool_choice: ToolChoice = "auto",
        *,
        parallel: bool = True,
        opened: bool = False,
    ) -> Guide:
        """What the answer is held to.

        Under `"auto"` text is free, at no cost, until a call's marker is out; from there on the call is held to its
        tool's schema, and after it comes another call or the end. Under `"required"` the first call starts at once, or
        after the model's thoughts; a named tool is called exactly once. Under `"none"` the marker is kept from being
        written.

        Args:
            tools: From `read_tools`.
            tool_choice: What the caller wants called.
            parallel: Whether more than one call is allowed.
            opened: Whether the prompt has begun the model's thoughts.

        Raises:
            ConfigError: A tool is asked for that isn't there.
            GrammarError: A tool's schema can't be enforced; the message names tool, keyword and path.
        """
        allowed = chosen(tools, tool_choice)
        if not tools:
            return FREE
        openings = (*self.form.openings, *self.form.tool_openings(tools))
        if tool_choice == "none":
            return self._reasoned(UntilCall(self._spelling, openings, None), opened=opened)
        calls = self._calls(allowed, "calls" if parallel and tool_choice in ("auto", "required") else "call")
        if tool_choice == "auto":
            return self._reasoned(UntilCall(self._spelling, openings, calls), opened=opened)
        return self._reasoned(calls, opened=opened)

    def held_to(self, guide: LlgGuide, *, opened: bool, thoughts: bool = False) -> Guide:
        """The guide for an answer that is one of `guide`'s, as this model gives it.

        Where answers stand in frames it is in one, behind thoughts as the model likes. Elsewhere it comes at once, or
        behind the thoughts that the prompt has begun, or, with `thoughts`, behind some of the model's own.
        """
        if self.form.frames:
            guide = guide.behind([self._spelling.rule(frame) for frame in self.form.frames])
        return self._reasoned(guide, opened=opened) if opened or thoughts or self.form.frames else guide

    def parser(
        self,
        tools: Sequence[Tool] = (),
        tool_choice: ToolChoice = "auto",
        *,
        opened: bool = False,
        held: bool = False,
        new_id: Callable[[], str] | None = None,
    ) -> MessageParser:
        """A parser for one answer. Without tools to call, or under `"none"`, all of it but thoughts is text.

        With `held` the answer is either calls or a text that something else holds, in which nothing is a call.
        """
        calls = bool(tools) and tool_choice != "none"
        return AnswerParser(
            self.form,
            tools if calls else (),
            calls=calls,
            reasoning=self.reasoning,
            opened=opened,
            held=held,
            new_id=new_id,
        )

    def _reasoned(self, guide: Resumable, *, opened: bool) -> Guide:
        return guide if self.reasoning is None else Reasoned(guide, self._spelling, self.reasoning, opened=opened)

    def _calls(self, tools: Sequence[Tool], start: str) -> LlgGuide:
        def lark() -> str:
            own = self.form.rules(tools, self._spelling.rule)
            return "\n".join((f"start: {start}", read_grammar(self.form.grammar), *own))

        return compile_calls(self._vocabulary, tools, lark)
