"""Structured output for LangChain: which schema the engine is given, and how its answer is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from operator import itemgetter
from typing import Any, Literal, cast, get_args

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
from langchain_core.runnables import Runnable, RunnableBranch, RunnableGenerator, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from langchain_core.utils.pydantic import is_basemodel_subclass
from pydantic import BaseModel

from agentspec.errors import ConfigError
from agentspec.grammar.enforceable import check_schema, check_tools
from agentspec.langchain.tools import openai_tools, read_tool_choice

OutputSchema = Mapping[str, Any] | type
"""A pydantic or TypedDict class, a JSON Schema, or an OpenAI function."""

Method = Literal["json_schema", "function_calling", "json_mode"]

HELD_TO = ("json_schema", "regex", "lark", "response_format")
"""Names of what a call may hold its answer to."""

_ANY_OBJECT = {"type": "object"}


def response_format(schema: OutputSchema, *, strict: bool | None = None) -> dict[str, Any]:
    """OpenAI's `response_format` for a schema.

    Args:
        schema: What the answer is held to.
        strict: Whether objects take no keys beyond the declared ones. None: those of classes don't, a dict is taken as
            it is.
    """
    found = _json_schema(schema)
    if strict or (strict is None and isinstance(schema, type)):
        found = _closed(found)
    name = str(found.get("title", "answer"))
    return {"type": "json_schema", "json_schema": {"name": name, "schema": found}}


def read_response_format(given: object) -> OutputSchema | None:
    """The JSON schema that a `response_format` asks for; None for plain text.

    Args:
        given: OpenAI's object, or a pydantic or TypedDict class. Under `strict` objects take declared keys only.

    Raises:
        ConfigError: It can't be read.
    """
    if isinstance(given, type):
        return read_response_format(response_format(given))
    kind = given.get("type") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or kind not in ("text", "json_object", "json_schema"):
        raise ConfigError(
            f"response_format must be a class, or a dict whose type is text, json_object or json_schema, not {given!r}"
        )
    if kind != "json_schema":
        return _ANY_OBJECT if kind == "json_object" else None
    described = given.get("json_schema")
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if not isinstance(described, Mapping) or not isinstance(schema, Mapping):
        raise ConfigError(f"response_format needs its schema under json_schema.schema, and has {given!r}")
    return cast("OutputSchema", _closed(schema)) if described.get("strict") else schema


def structured_output(
    model: BaseChatModel,
    schema: OutputSchema | None,
    *,
    method: Method,
    include_raw: bool,
    strict: bool | None,
    options: Mapping[str, Any],
) -> Runnable[LanguageModelInput, Any]:
    """What `ChatAgentSpec.with_structured_output` gives."""
    if method not in get_args(Method):
        raise ConfigError(f"method must be one of {', '.join(get_args(Method))}, not {method!r}")
    if schema is None and method != "json_mode":
        raise ConfigError(f"method {method!r} needs a schema")
    _check_options(options, method)
    shown = {"kwargs": {"method": method, "strict": strict}, "schema": schema}
    bound = {"ls_structured_output_format": shown, **options}
    if method == "json_mode" or schema is None:
        return _read_by(model.bind(response_format={"type": "json_object"}, **bound), _text_reader(schema), include_raw)
    if method == "json_schema":
        held_to = response_format(schema, strict=strict)
        check_schema(held_to["json_schema"]["schema"])
        return _read_by(model.bind(response_format=held_to, **bound), _text_reader(schema), include_raw)
    name = str(convert_to_openai_tool(schema)["function"]["name"])
    bound |= {"tool_choice": name, "parallel_tool_calls": False}
    calling = model.bind_tools([cast("Any", schema)], strict=strict, **bound)
    return _read_by(calling, _call_reader(schema, name), include_raw, calls=True)


def _check_options(options: Mapping[str, Any], method: Method) -> None:
    """What is asked for beside the schema: tools may be, under "auto"; nothing else that would hold the answer."""
    if given := [name for name in HELD_TO if options.get(name) is not None]:
        raise ConfigError(f"the answer can be held to one thing, to the schema or to {given[0]}: leave one out")
    if not options.get("tools"):
        return
    tools = openai_tools(options["tools"])
    choice = read_tool_choice(options.get("tool_choice"), tools)
    if method == "function_calling" or choice not in ("auto", "none"):
        raise ConfigError(
            f"method {method!r} with tool_choice {choice!r} leaves no choice between the tools and the schema: "
            'use method "json_schema" and tool_choice "auto"'
        )
    check_tools(tools, choice)


def _text_reader(schema: OutputSchema | None) -> Runnable[Any, Any]:
    if isinstance(schema, type) and is_basemodel_subclass(schema):
        return PydanticOutputParser(pydantic_object=schema)
    return JsonOutputParser()


def _call_reader(schema: OutputSchema, name: str) -> Runnable[Any, Any]:
    if isinstance(schema, type) and is_basemodel_subclass(schema):
        return PydanticToolsParser(tools=[schema], first_tool_only=True)
    return JsonOutputKeyToolsParser(key_name=name, first_tool_only=True)


def _read_by(
    model: Runnable[LanguageModelInput, AIMessage],
    parser: Runnable[Any, Any],
    include_raw: bool,
    *,
    calls: bool = False,
) -> Runnable[LanguageModelInput, Any]:
    reader = _checked(calls=calls) | parser
    if not include_raw:
        return model | reader
    read = RunnablePassthrough.assign(parsed=itemgetter("raw") | reader, parsing_error=lambda _: None)
    failed = RunnablePassthrough.assign(parsed=lambda _: None)
    parsed = read.with_fallbacks([failed], exception_key="parsing_error")
    if calls:
        return RunnableMap(raw=model) | parsed
    called = RunnablePassthrough.assign(parsed=lambda _: None, parsing_error=lambda _: None)
    return RunnableMap(raw=model) | RunnableBranch((_calls_tools, called), parsed)


def _calls_tools(found: Mapping[str, Any]) -> bool:
    return bool(found["raw"].response_metadata.get("finish_reason") == "tool_calls")


def _checked(*, calls: bool) -> Runnable[AIMessage, AIMessage]:
    """Lets messages pass, but none that the length limit cut: LangChain's parsers would complete its JSON.

    Args:
        calls: Whether the value is in a call; else calls are of tools, and there is no value.
    """

    def check(message: AIMessage) -> AIMessage:
        if message.response_metadata.get("finish_reason") == "length":
            raise OutputParserException(
                "the answer was cut off by the length limit, so it is not whole: raise max_tokens",
                llm_output=message.text,
            )
        if message.tool_calls and not calls:
            names = ", ".join(call["name"] for call in message.tool_calls)
            raise OutputParserException(f"the answer calls {names}: read its calls with include_raw=True")
        return message

    def each(messages: Iterator[AIMessage]) -> Iterator[AIMessage]:
        for message in messages:
            yield check(message)

    async def each_later(messages: AsyncIterator[AIMessage]) -> AsyncIterator[AIMessage]:
        async for message in messages:
            yield check(message)

    return RunnableGenerator(each, each_later)


def _json_schema(schema: OutputSchema) -> dict[str, Any]:
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema()
    if isinstance(schema, Mapping) and "name" not in schema and "function" not in schema:
        return dict(schema)
    return convert_to_json_schema(schema)  # type: ignore[arg-type]


def _closed(schema: Any) -> Any:  # noqa: ANN401 (JSON)
    """The schema with every object that lists properties, and says nothing of others, taking no others."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {
        key: {name: _closed(item) for name, item in value.items()}
        if key in ("properties", "$defs", "definitions")
        else value
        if key in ("default", "const", "enum", "examples")
        else _closed(value)
        for key, value in schema.items()
    }
    return {"additionalProperties": False, **closed} if "properties" in closed else closed
