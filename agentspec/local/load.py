"""Puts an engine together: model, tokenizer, draft model, proposers, controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentspec.chat.formats.hermes import HermesFormat
from agentspec.config import EngineConfig
from agentspec.control import SpeculationController
from agentspec.cost import CPU_SHAPE, DEVICE_SHAPE, CostTable
from agentspec.engine.core import EngineCore
from agentspec.grammar.vocabulary import Vocabulary, check_same_text
from agentspec.local.ask import Asker
from agentspec.models.embedded import resolve
from agentspec.models.hf import HFTarget
from agentspec.models.load import load_target, load_tokenizer
from agentspec.proposers.base import Proposer
from agentspec.proposers.registry import build_proposer


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where and how models are loaded; see `Engine.load`."""

    device: str | None = None
    dtype: str | None = None
    device_map: str | dict[str, object] | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model in memory, ready for one engine core or, one after the other, for several."""

    target: HFTarget
    draft_model: HFTarget | None
    vocabulary: Vocabulary
    asker: Asker

    def core(self, proposers: Sequence[str | Proposer] | None, config: EngineConfig) -> EngineCore:
        """An engine core on these models; see `Engine.load` for `proposers`."""
        target = self.target
        shape = CPU_SHAPE if target.device.type == "cpu" else DEVICE_SHAPE
        controller = SpeculationController(max_draft=config.max_draft, cost=CostTable(shape))
        proposer = build_proposer(proposers, vocabulary=self.vocabulary, draft_model=self.draft_model, judge=controller)
        return EngineCore(target, proposer, controller=controller, config=config)


def load_models(model: str | None, draft: str | None, *, placement: Placement, config: EngineConfig) -> Loaded:
    """Load a model, and a draft model if one is named; their tokenizers are compared before weights are read."""
    name = str(resolve(model))
    tokenizer = load_tokenizer(name, trust_remote_code=placement.trust_remote_code)
    vocabulary = Vocabulary.of(tokenizer)
    draft_name = None if draft is None else str(resolve(draft))
    if draft_name is not None:
        draft_tokenizer = load_tokenizer(draft_name, trust_remote_code=placement.trust_remote_code)
        check_same_text(vocabulary, Vocabulary.of(draft_tokenizer))
    target = _load(name, placement, tokenizer, strict_width=1 + config.max_draft if config.strict else None)
    draft_model = None if draft_name is None else _load(draft_name, placement, tokenizer)
    vocabulary = vocabulary.ending(target.eos)
    asker = Asker(tokenizer, vocabulary, HermesFormat(tokenizer, vocabulary))
    return Loaded(target=target, draft_model=draft_model, vocabulary=vocabulary, asker=asker)


def _load(name: str, placement: Placement, tokenizer: object, *, strict_width: int | None = None) -> HFTarget:
    return load_target(
        name,
        device=placement.device,
        dtype=placement.dtype,
        device_map=placement.device_map,
        trust_remote_code=placement.trust_remote_code,
        allow_pickle=placement.allow_pickle,
        strict_width=strict_width,
        tokenizer=tokenizer,
    )
