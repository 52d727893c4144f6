"""Puts an engine together: model, tokenizer, draft model, proposers, controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentspec.chat.chat import Chat
from agentspec.chat.formats.registry import check_name
from agentspec.config import EngineConfig
from agentspec.control import FixedController, SpeculationController
from agentspec.cost import CPU_SHAPE, DEVICE_SHAPE, ONE_WIDTH, CostTable
from agentspec.engine.core import EngineCore
from agentspec.engine.thread import MODEL_THREAD
from agentspec.errors import ConfigError
from agentspec.grammar.vocabulary import Vocabulary, check_same_text
from agentspec.local.ask import Asker
from agentspec.models.embedded import resolve
from agentspec.models.hf import HFTarget
from agentspec.models.known_cost import known_cost
from agentspec.models.load import load_target
from agentspec.models.tokenizer import load_tokenizer
from agentspec.proposers.answer_file import AnswerFile
from agentspec.proposers.answers import AnswerStore
from agentspec.proposers.base import Proposer
from agentspec.proposers.registry import build_proposer


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where and how models are loaded, and how they write tool calls; see `Engine.load`."""

    device: str | None = None
    dtype: str | None = None
    device_map: str | dict[str, object] | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    tool_format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model in memory, ready for one engine core or, one after the other, for several."""

    target: HFTarget
    draft_model: HFTarget | None
    vocabulary: Vocabulary
    asker: Asker

    def core(
        self,
        proposers: Sequence[str | Proposer] | None,
        config: EngineConfig,
        controller: SpeculationController | None = None,
    ) -> EngineCore:
        """An engine core on these models; see `Engine.load` for `proposers`."""
        target, controller = self.target, controller or self.controller(config)
        proposer = build_proposer(
            proposers,
            vocabulary=self.vocabulary,
            draft_model=self.draft_model,
            judge=controller,
            answers=_answers(config, self.vocabulary),
            config=config,
        )
        return EngineCore(target, proposer, controller=controller, config=config)

    def controller(self, config: EngineConfig) -> SpeculationController:
        """What decides how much is drafted on this model."""
        if config.budget is not None:
            return FixedController(config.budget)
        if config.strict:
            cost = CostTable(ONE_WIDTH)
        elif config.measure_cost:
            cost = MODEL_THREAD.call(lambda: known_cost(self.target))
        else:
            cost = CostTable(CPU_SHAPE if self.target.device.type == "cpu" else DEVICE_SHAPE)
        return SpeculationController(max_draft=config.max_draft, cost=cost)


def load_models(model: str | None, draft: str | None, *, placement: Placement, config: EngineConfig) -> Loaded:
    """Load a model, and a draft model if one is named; their tokenizers are compared before weights are read."""
    if placement.tool_format is not None:
        check_name(placement.tool_format)
    name = str(resolve(model))
    tokenizer = load_tokenizer(name, trust_remote_code=placement.trust_remote_code)
    vocabulary = Vocabulary.of(tokenizer)
    draft_name = None if draft is None else str(resolve(draft))
    if draft_name is not None:
        draft_tokenizer = load_tokenizer(draft_name, trust_remote_code=placement.trust_remote_code)
        check_same_text(vocabulary, Vocabulary.of(draft_tokenizer))
    _answers(config, vocabulary)  # a file that can't be used is told of before weights are read
    target = _load(name, placement, tokenizer, strict_width=1 + config.max_draft if config.strict else None)
    draft_model = None if draft_name is None else _load(draft_name, placement, tokenizer)
    vocabulary = vocabulary.ending(target.eos)
    asker = Asker(tokenizer, vocabulary, Chat(tokenizer, vocabulary, tool_format=placement.tool_format))
    return Loaded(target=target, draft_model=draft_model, vocabulary=vocabulary, asker=asker)


def _answers(config: EngineConfig, vocabulary: Vocabulary) -> AnswerStore:
    """The store of finished answers, with those of earlier processes where they are kept."""
    if config.history is None:
        return AnswerStore(shared=config.share_history)
    try:
        path = Path(config.history).expanduser()
    except RuntimeError as error:  # ~name, and nobody has the name
        raise ConfigError(f"history {config.history} has no home folder: give another path") from error
    file = AnswerFile(path, vocabulary)
    store = AnswerStore(shared=config.share_history, keep=file.append)
    for caller, answer in file.read():
        store.recall(caller, answer)
    return store


def _load(name: str, placement: Placement, tokenizer: object, *, strict_width: int | None = None) -> HFTarget:
    return MODEL_THREAD.call(
        lambda: load_target(
            name,
            device=placement.device,
            dtype=placement.dtype,
            device_map=placement.device_map,
            trust_remote_code=placement.trust_remote_code,
            allow_pickle=placement.allow_pickle,
            strict_width=strict_width,
            tokenizer=tokenizer,
        )
    )
