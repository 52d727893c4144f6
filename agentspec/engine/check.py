"""What an engine core refuses before it costs anything."""

from __future__ import annotations

from agentspec.engine.request import Order
from agentspec.errors import ConfigError, PromptError, PromptTooLongError


def check_order(order: Order, *, vocab_size: int, context_length: int) -> None:
    """Refuse an order that can't be run.

    Raises:
        PromptTooLongError: The prompt leaves no room in the context.
        PromptError: The prompt is empty or holds an id outside the vocabulary.
        ConfigError: The seed is missing, more tokens must come than there is room for, or a parameter names an id
            outside the vocabulary.
    """
    length = len(order.prompt)
    if not length:
        raise PromptError("the prompt is empty: give it at least one token")
    if length >= context_length:
        raise PromptTooLongError(
            f"the prompt has {length} tokens and the model's context holds {context_length}: "
            f"shorten it by at least {length - context_length + 1}"
        )
    if order.params.min_tokens > context_length - length:
        raise ConfigError(
            f"min_tokens is {order.params.min_tokens}, but behind the prompt's {length} tokens the model's context has "
            f"room for {context_length - length}"
        )
    for token in order.prompt:
        if not 0 <= token < vocab_size:
            raise PromptError(f"token id {token} of the prompt is outside the vocabulary of {vocab_size}")
    params = order.params
    banned = [token for word in params.bad_words for token in word]
    for name, tokens in (
        ("stop_token_ids", params.stop_token_ids),
        ("logit_bias", params.logit_bias),
        ("bad_words", banned),
    ):
        for named in tokens:
            if not (isinstance(named, int) and named < vocab_size):
                raise ConfigError(f"{name} names token id {named}, which is outside the vocabulary of {vocab_size}")
    if params.seed is None:
        raise ConfigError("an order to the engine core needs a seed")
