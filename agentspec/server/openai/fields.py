"""Fields that several of OpenAI's APIs share, and what they mean for the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from openai.types import CompletionUsage
from openai.types.completion_usage import CompletionTokensDetails, PromptTokensDetails
from pydantic import BaseModel, ConfigDict, Field

from agentspec.config import SamplingParams
from agentspec.grammar.tools import ToolChoice
from agentspec.local.ask import Options
from agentspec.local.result import Result
from agentspec.server.limits import check_size
from agentspec.server.problems import bad_request, problem_of
from agentspec.server.settings import ServerSettings

_INSTEAD = {
    "guided_json": "json_schema with the same schema, or response_format",
    "guided_regex": "regex",
    "guided_choice": "regex with an alternative for each, such as (yes|no)",
    "guided_grammar": "grammar, in llguidance's Lark",
    "structured_outputs": "one of json_schema, regex and grammar, as a field of the request, or response_format",
    "repeat_penalty": "repetition_penalty",
    "length_penalty": "min_tokens and max_tokens: there are no beams whose lengths would be weighed",
    "typical_p": "top_p or min_p",
    "mirostat": "top_p or min_p",
    "use_beam_search": "n with a temperature: answers are sampled, without beams",
    "ignore_eos": "min_tokens, as many as max_tokens",
    "allowed_token_ids": "regex or grammar, or logit_bias for a few tokens",
    "prompt_logprobs": "logprobs, which are of the answer: those of a prompt are not computed",
    "chat_template": "a model whose folder has that template, or /v1/completions with the prompt written out",
    "chat_template_kwargs": "what the model reads in a message, such as Qwen 3's /no_think for enable_thinking: false, "
    "or /v1/completions with the prompt written out",
    "continue_final_message": "/v1/completions with the prompt written out, up to where it goes on",
    "truncate_prompt_tokens": "a shorter prompt: what a model would not see is for the client to choose",
    "include_stop_str_in_output": "the answer with its stop string put behind it: finish_reason tells that it was met",
    "logits_processors": "logit_bias, bad_words, or one of json_schema, regex and grammar",
    "moderation": "a model of your own",
}
"""Fields of other servers that would change an answer, and what says the same here."""

_NEUTRAL = {"repeat_penalty": 1, "length_penalty": 1, "typical_p": 1, "mirostat": 0, "chat_template_kwargs": {}}
"""What asks for nothing, beside null and false."""

_SAMPLING = (
    "temperature top_p top_k min_p min_tokens frequency_penalty presence_penalty repetition_penalty logit_bias seed n "
    "stop stop_token_ids bad_words"
).split()


class SamplingFields(BaseModel):
    """How tokens are picked. What is left out or null is as for the engine: greedy, unless a temperature is given.

    Fields that change nothing about an answer are taken and left alone.
    """

    model_config = ConfigDict(extra="allow")

    model: str
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    min_tokens: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    seed: int | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    user: str | None = None
    speculate: bool | None = None

    def params(self, *, max_tokens: int | None, logprobs: int | None) -> SamplingParams:
        """As the engine takes them.

        Raises:
            Problem: A field would have to change the answer, and can't.
            ConfigError: One is out of range.
        """
        refuse(self, _INSTEAD)
        given = {name: value for name in _SAMPLING if (value := getattr(self, name)) is not None}
        return SamplingParams(**given, max_tokens=max_tokens, logprobs=logprobs)

    def whose(self) -> Options:
        """Whose request it is, and whether drafts are made for it."""
        options: Options = {"caller": self.user or ""}
        if self.speculate is not None:
            options["speculate"] = self.speculate
        return options


def refuse(asked: BaseModel, instead: Mapping[str, str]) -> None:
    """Refuse fields that can't be honoured, told what says the same; but not where they ask for nothing.

    Raises:
        Problem: There is one.
    """
    for name, value in (asked.model_extra or {}).items():
        if name in instead and value is not None and value is not False and value != _NEUTRAL.get(name):
            raise bad_request(f"{name} is not supported: use {instead[name]}", name)


class HeldFields(BaseModel):
    """What an answer is held to, beside OpenAI's own formats: a JSON Schema, a regex, or a grammar in Lark."""

    json_schema_: dict[str, Any] | None = Field(default=None, alias="json_schema")
    regex: str | None = None
    grammar: str | None = None

    def held_to(self, formatted: Options, settings: ServerSettings) -> Options:
        """As the engine takes it.

        Args:
            formatted: What a format of OpenAI's holds the answer to already.
            settings: Limits.

        Raises:
            Problem: Two are given, or one is too large.
        """
        options = formatted
        for name, value in (("json_schema", self.json_schema_), ("regex", self.regex), ("grammar", self.grammar)):
            if value is None:
                continue
            check_size(value, name, settings)
            if options:
                raise bad_request(f"the answer can be held to one thing: leave out {name} or the other", name)
            options = {"lark" if name == "grammar" else name: value}  # type: ignore[misc]
        return options

    def held_names(self, formatted: str | None) -> dict[str, str]:
        """What the engine's fields for this are called.

        Args:
            formatted: The field that OpenAI's format was given in, if one was.
        """
        held = next((name for name in ("regex", "grammar") if getattr(self, name) is not None), "tools")
        return {"lark": held, "response_format": formatted or "json_schema"}


class StreamOptions(BaseModel):
    """What a stream tells beside the answer."""

    include_usage: bool = False


def read_tool_options(
    tools: Sequence[Mapping[str, Any]] | None,
    choice: object,
    *,
    parallel: bool | None,
    settings: ServerSettings,
) -> Options:
    """What may be called; nothing where there are no tools.

    Raises:
        Problem: There are too many, or the choice needs tools and there are none.
    """
    if not tools:
        if choice not in (None, "none", "auto"):
            raise bad_request(f"tool_choice {choice!r} needs tools, and there are none", "tool_choice")
        return {}
    if len(tools) > settings.max_tools:
        raise bad_request(f"there are {len(tools)} tools, at most {settings.max_tools} may be", "tools")
    check_size(tools, "tools", settings)
    allowed, chosen = _allowed(tools, choice)
    options: Options = {"tools": allowed, "tool_choice": chosen}
    if parallel is not None:
        options["parallel_tool_calls"] = parallel
    return options


def _allowed(tools: Sequence[Mapping[str, Any]], choice: object) -> tuple[Sequence[Mapping[str, Any]], ToolChoice]:
    """The tools that may be called, and the choice among them: OpenAI's "allowed_tools" names some of the list."""
    if choice is None:
        return tools, "auto"
    if isinstance(choice, str):
        return tools, "required" if choice == "any" else choice
    if not isinstance(choice, Mapping):
        raise bad_request(f"tool_choice must be a word or an object, not {choice!r}", "tool_choice")
    if choice.get("type") != "allowed_tools":
        return tools, choice
    inner = choice.get("allowed_tools", choice)
    named = inner.get("tools") if isinstance(inner, Mapping) else None
    if not isinstance(named, list) or inner.get("mode", "auto") not in ("auto", "required"):
        raise bad_request('tool_choice "allowed_tools" must have a mode (auto or required) and tools', "tool_choice")
    names = [_tool_name(each) for each in named]
    known = {name: tool for tool in tools if isinstance(name := _tool_name(tool), str)}
    if unknown := [name for name in names if not isinstance(name, str) or name not in known]:
        raise bad_request(f"tool_choice allows {unknown[0]!r}, which is none of the tools", "tool_choice")
    return [known[str(name)] for name in dict.fromkeys(names)], inner.get("mode", "auto")


def _tool_name(tool: object) -> object:
    """A tool's name, nested as chats have it or flat as responses have it."""
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None


def read_format(given: object, settings: ServerSettings, field: str = "response_format") -> Options:
    """What a response format holds the answer to: text, any JSON object, or a JSON Schema.

    Raises:
        Problem: It is none of these, or too large.
    """
    if given is None:
        return {}
    kind = given.get("type") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or kind not in ("text", "json_object", "json_schema"):
        raise bad_request(f"{field} must have the type text, json_object or json_schema, not {kind!r}", field)
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"json_schema": {"type": "object"}}
    nested = given.get("json_schema", given)
    schema = nested.get("schema") if isinstance(nested, Mapping) else None
    if not isinstance(schema, Mapping):
        raise bad_request(f"{field} of type json_schema must hold a schema, an object", field)
    check_size(schema, field, settings)
    return {"json_schema": dict(schema)}


@contextmanager
def renaming(names: Mapping[str, str]) -> Iterator[None]:
    """Tells problems with an API's own names for the engine's fields.

    Raises:
        Problem: For whatever was raised within.
    """
    try:
        yield
    except Exception as error:
        problem = problem_of(error)
        if name := names.get(problem.param or ""):
            rest = problem.message.removeprefix(f"{problem.param} ")
            message = problem.message if rest == problem.message else f"{name} {rest}"
            problem = replace(problem, param=name, message=message)
        raise problem from error


def usage_of(*prompts: Sequence[Result]) -> CompletionUsage:
    """The token counts of a request: of each prompt's answers, in which that prompt counts once."""
    results = [result for answers in prompts for result in answers]
    drafted = sum(result.stats.drafted["prediction"] for result in results)
    accepted = sum(result.stats.accepted["prediction"] for result in results)
    prompt = sum(answers[0].usage.prompt_tokens for answers in prompts)
    completion = sum(result.usage.completion_tokens for result in results)
    return CompletionUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        prompt_tokens_details=PromptTokensDetails(
            cached_tokens=sum(answers[0].usage.cached_tokens for answers in prompts)
        ),
        completion_tokens_details=CompletionTokensDetails(
            accepted_prediction_tokens=accepted, rejected_prediction_tokens=drafted - accepted
        ),
    )
