"""LangChain's messages to the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages

from agentspec.errors import PromptError

REASONING = "reasoning_content"
"""Where thoughts are, in the engine's messages and in `additional_kwargs` of LangChain's."""

_CALLS = ("tool_call", "invalid_tool_call")
_THOUGHTS = ("reasoning", "thinking")


def openai_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The messages in OpenAI's form, their text parts as they are.

    Calls of an earlier answer that were cut off are left out: nobody ran them. Its thoughts are kept, for templates
    that show them.

    Raises:
        PromptError: A message can't be written in that form.
    """
    try:
        return [message for each in messages for message in _openai(each)]
    except ValueError as error:
        raise PromptError(" ".join(str(error).split())) from error


def _openai(message: BaseMessage) -> list[dict[str, Any]]:
    plain, thoughts = _plain(message)
    written = convert_to_openai_messages([plain], text_format="block")
    thoughts = message.additional_kwargs.get(REASONING) or thoughts
    return [{**each, REASONING: thoughts} if thoughts else each for each in written]


def _plain(message: BaseMessage) -> tuple[BaseMessage, str]:
    """The message without blocks that are thoughts, or repeat its calls as `output_version="v1"` does; the thoughts."""
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message, ""
    blocks = [block if isinstance(block, dict) else {"type": "text", "text": block} for block in message.content]
    thoughts = [_thought(block) for block in blocks if block.get("type") in _THOUGHTS]
    rest = [block for block in blocks if block.get("type") not in (*_CALLS, *_THOUGHTS)]
    return message.model_copy(update={"content": rest}), "\n".join(filter(None, thoughts))


def _thought(block: Mapping[str, Any]) -> str:
    """LangChain's and Anthropic's thoughts; of OpenAI's only a summary is told."""
    summary = "\n".join(each.get("text", "") for each in block.get("summary") or ())
    return str(block.get("reasoning") or block.get("thinking") or summary)
