"""Proposers by name, in the order in which a pool asks them."""

from __future__ import annotations

from collections.abc import Sequence

from agentspec.config import EngineConfig
from agentspec.errors import ConfigError
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.models.base import TargetModel
from agentspec.proposers.answers import AnswerStore
from agentspec.proposers.base import TRUSTING, Judge, Off, Proposer
from agentspec.proposers.grammar import GrammarProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.proposers.shape import ShapeProposer
from agentspec.proposers.suffix import SuffixProposer

NAMES = ("grammar", "shape", "suffix", "model")


def build_proposer(
    wanted: Sequence[str | Proposer] | None,
    *,
    vocabulary: Vocabulary,
    draft_model: TargetModel | None,
    judge: Judge = TRUSTING,
    answers: AnswerStore | None = None,
    config: EngineConfig | None = None,
) -> Proposer:
    """One proposer of those wanted: names from `NAMES`, or proposers of your own.

    Args:
        wanted: In the order of trust; None: all that there is a model for; empty: plain decoding.
        vocabulary: Of the target; nothing is drafted after its end tokens.
        draft_model: For the name "model".
        judge: Knows what guesses are worth: the controller.
        answers: What "suffix" remembers of earlier requests; None: what it sees of them itself.
        config: How the draft model may use the machine; None: the defaults.

    Raises:
        ConfigError: A name is unknown, or "model" is wanted without a draft model.
    """
    if wanted is None:
        wanted = [name for name in NAMES if draft_model or name != "model"]
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise ConfigError(f"proposers must be a list of {', '.join(NAMES)} or proposers of your own, not {wanted!r}")
    members: list[Proposer] = []
    for each in wanted:
        if not isinstance(each, str):
            if not callable(getattr(each, "propose", None)) or not hasattr(each, "sources"):
                raise ConfigError(f"{each!r} is no proposer: see agentspec.proposers.base")
            members.append(each)
        elif each == "grammar":
            members.append(GrammarProposer(vocabulary))
        elif each == "shape":
            members.append(ShapeProposer(vocabulary))
        elif each == "suffix":
            members.append(SuffixProposer(vocabulary, answers))
        elif each == "model" and draft_model:
            members.append(_model_proposer(draft_model, vocabulary, judge, config or EngineConfig()))
        elif each == "model":
            raise ConfigError("proposer 'model' needs a draft model: name one with draft=")
        else:
            raise ConfigError(f"no proposer is called {each!r}; there are: {', '.join(NAMES)}")
    return ProposerPool(members, judge=judge) if members else Off()


def _model_proposer(model: TargetModel, vocabulary: Vocabulary, judge: Judge, config: EngineConfig) -> Proposer:
    from agentspec.proposers.model import ModelProposer  # brings torch, which the others do without

    return ModelProposer(
        model,
        eos=vocabulary.eos,
        calibrated=judge.chance,
        prefill_chunk=config.prefill_chunk,
        prefix_cache_tokens=config.prefix_cache_tokens,
    )
