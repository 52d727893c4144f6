"""Every error that agentspec raises on purpose.

    AgentSpecError
    ├── ConfigError (ValueError)          a setting or sampling parameter is unknown, out of range or can't be honoured
    ├── PromptError (ValueError)          the prompt or a message can't be used
    │   └── PromptTooLongError            it leaves no room in the model's context
    ├── GrammarError (ValueError)         a schema, regex, grammar or tool can't be enforced
    │   └── GrammarDeadEndError           no token of the vocabulary may come next
    ├── TraceError (ValueError)           a trace file or line can't be read
    └── ModelError
        ├── ModelNotFoundError            no such folder, file or hub id
        ├── ModelFetchError               a model's file could not be fetched, or its digest is wrong
        ├── UnsupportedModelError         this architecture can't be run without changing its tokens
        ├── VocabularyMismatchError       target and draft model disagree about a token
        └── EngineError                   the engine stopped, or was closed, before the request was done

A message says what happened, the value, and what to do, on one line. Errors of other libraries are translated in the
one file that imports that library, with the original as the cause.
"""


class AgentSpecError(Exception):
    """The root: catch it to catch whatever agentspec raises on purpose."""


class ConfigError(AgentSpecError, ValueError):
    """A setting or sampling parameter is unknown, out of range, or can't be honoured."""


class PromptError(AgentSpecError, ValueError):
    """The prompt, or one of its messages, can't be used."""


class PromptTooLongError(PromptError):
    """The prompt leaves no room for an answer in the model's context."""


class GrammarError(AgentSpecError, ValueError):
    """A schema, regex, grammar or tool can't be enforced."""


class GrammarDeadEndError(GrammarError):
    """The grammar allows no token of the vocabulary after the text so far."""


class TraceError(AgentSpecError, ValueError):
    """A trace file, or a line of it, can't be read."""


class ModelError(AgentSpecError):
    """Something about a model: finding, loading or running it."""


class ModelNotFoundError(ModelError):
    """No model is where the caller said."""


class ModelFetchError(ModelError):
    """A model's file could not be fetched, or is not the file that was expected."""


class UnsupportedModelError(ModelError):
    """This architecture can't be run here without risking a changed token."""


class VocabularyMismatchError(ModelError):
    """Target and draft model give some token id different text."""


class EngineError(ModelError):
    """The engine failed, or was closed, before the request was done."""


def check_text(text: str, place: str, error: type[AgentSpecError] = ConfigError) -> None:
    """Refuse what is no text: half of a character, as bytes that were not UTF-8 leave it, has no tokens.

    Args:
        text: What a caller gave.
        place: What the message calls it.
        error: The kind to raise.
    """
    try:
        text.encode()
    except UnicodeEncodeError as found:
        lone = text[found.start]
        raise error(f"{place} holds a lone surrogate, {lone!r} at character {found.start}: not text") from None
