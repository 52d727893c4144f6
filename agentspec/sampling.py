"""How the target picks a token: processors, filters, and noise keyed by seed and position."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from agentspec.config import SamplingParams
from agentspec.grammar.base import Mask
from agentspec.places import DEAD_END, GOLDEN, WORD, Place, mix

_MOST_NOISE = -math.log(-math.log1p(-(2.0**-33)))


def noise(seed: int, position: int, tokens: Tensor) -> Tensor:
    """Gumbel noise for token ids, the same for the same arguments on every machine (arXiv 2408.07978).

    Args:
        seed: Any integer; taken modulo 2**64.
        position: Index of the token in its sequence.
        tokens: Ids, int64, any shape.

    Returns:
        float64 of the shape of `tokens`.
    """
    key = mix((seed + GOLDEN * (position + 1)) & WORD)
    bits = tokens * _signed(GOLDEN) + _signed(key)
    for shift, factor in ((30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB), (31, 1)):
        bits = (bits ^ ((bits >> shift) & ((1 << (64 - shift)) - 1))) * _signed(factor)
    uniform = (((bits >> 32) & 0xFFFF_FFFF).double() + 0.5) * 2.0**-32
    return -torch.log(-torch.log(uniform))


def pick(logits: Tensor, places: Sequence[Place]) -> Sequence[int]:
    """The target's token at each place, or `DEAD_END`.

    On the CPU a place is worked out when it is asked for, so that places behind a rejected draft cost nothing; on a
    device all are worked out together, with one synchronization, but for likeliest tokens that the grammar refuses.

    Args:
        logits: `[places, vocab]` float32, not changed.
        places: One a row.
    """
    if logits.device.type == "cpu":
        rows = logits.numpy()  # which finds a row's likeliest token, the first of several, in a tenth of torch's time
        return _Lazy(logits, places, lambda index: int(rows[index].argmax()))
    if all(_is_argmax(place) for place in places):
        likeliest: list[int] = logits.argmax(-1).tolist()
        return _Lazy(logits, places, likeliest.__getitem__)
    picks: list[int] = torch.stack([_pick(row, place) for row, place in zip(logits, places, strict=True)]).tolist()
    return picks


def chance(logits: Tensor, token: int) -> float:
    """Softmax chance of `token` under one row of logits, `[vocab]`."""
    return float((logits[token] - logits.logsumexp(-1)).exp())


def logprobs(logits: Tensor, token: int, top: int) -> tuple[float, dict[int, float]]:
    """Log-probability of `token` under unprocessed logits `[vocab]`, and those of the `top` likeliest tokens."""
    scores = logits.log_softmax(-1)
    values, ids = scores.topk(top)
    return float(scores[token]), dict(zip(ids.tolist(), values.tolist(), strict=True))


class _Lazy(Sequence[int]):
    """Picks, each worked out once, when it is first asked for.

    Args:
        logits: `[places, vocab]`.
        places: One a row.
        likeliest: The likeliest token of a row.
    """

    def __init__(self, logits: Tensor, places: Sequence[Place], likeliest: Callable[[int], int]) -> None:
        self._logits, self._places, self._likeliest = logits, places, likeliest
        self._known: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> int:  # type: ignore[override]
        if index not in self._known:
            self._known[index] = self._pick(index)
        return self._known[index]

    def __iter__(self) -> Iterator[int]:
        return (self[index] for index in range(len(self)))

    def _pick(self, index: int) -> int:
        place = self._places[index]
        if _is_argmax(place):
            likeliest = self._likeliest(index)
            # Where it may follow there is no need of a mask, and whoever goes on with it asks for that place anyway.
            if place.cursor.advance(likeliest) is not None:
                return likeliest
        return int(_pick(self._logits[index], place))


def _is_argmax(place: Place) -> bool:
    """Whether the likeliest token of those that may follow is picked."""
    return place.params.temperature == 0 and not _edits(place)


def _edits(place: Place) -> bool:
    params = place.params
    return bool(place.history) and bool(
        params.min_tokens
        or params.bad_words
        or params.logit_bias
        or params.repetition_penalty != 1
        or params.frequency_penalty
        or params.presence_penalty
    )


def _pick(logits: Tensor, place: Place) -> Tensor:
    """A 0-d int64 tensor: the token picked under `logits` `[vocab]`."""
    mask = place.cursor.mask()
    scores = _edit(logits, place, mask) if _edits(place) else logits
    if mask is not None:
        scores = _masked(scores, mask)
    if place.params.temperature == 0:
        token = _argmax(scores)
    else:
        token = _draw(_filter(scores / place.params.temperature, place.params), place)
    return torch.where(scores[token] == -torch.inf, DEAD_END, token)


def _argmax(scores: Tensor) -> Tensor:
    """The likeliest token, the first of several."""
    return torch.tensor(scores.numpy().argmax()) if scores.device.type == "cpu" else scores.argmax()


def _edit(logits: Tensor, place: Place, mask: Mask | None) -> Tensor:
    """A copy of the logits after every processor that looks at tokens one by one."""
    params, history, scores = place.params, place.history, logits.clone()
    assert history is not None
    if history.length + len(place.path) < params.min_tokens and not _only(place.eos, mask):
        scores[sorted(place.eos)] = -torch.inf
    banned = [word[-1] for word in params.bad_words if history.ends_with(_ids(word)[:-1], place.path)]
    banned += [token for token, value in params.logit_bias.items() if value == -100]
    added = {token: value for token, value in params.logit_bias.items() if value != -100}
    width = len(scores)
    scores[[token for token in banned if isinstance(token, int) and token < width]] = -torch.inf
    for token, value in added.items():
        if token < width:
            scores[token] += value
    if params.repetition_penalty != 1:
        ids = torch.tensor(history.seen(place.path), device=scores.device)
        values = scores[ids]
        penalty = params.repetition_penalty
        scores[ids] = torch.where(values > 0, values / penalty, values * penalty)
    if (params.frequency_penalty or params.presence_penalty) and (written := history.written(place.path)):
        ids = torch.tensor(list(written), device=scores.device)
        counts = torch.tensor(list(written.values()), device=scores.device, dtype=scores.dtype)
        scores[ids] -= params.frequency_penalty * counts + params.presence_penalty
    return scores


def _ids(word: str | tuple[int, ...]) -> tuple[int, ...]:
    if isinstance(word, str):
        raise TypeError(f"bad word {word!r} must be token ids by now")
    return word


def _only(tokens: frozenset[int], mask: Mask | None) -> bool:
    """Whether the mask allows nothing outside `tokens`."""
    if mask is None:
        return False
    rest = mask.copy()
    for token in tokens:
        if token // 32 < len(rest):
            rest[token // 32] &= ~np.uint32(1 << (token % 32))
    return not rest.any()


def _masked(scores: Tensor, mask: Mask) -> Tensor:
    """Scores `[vocab]` with every token that the mask has not at minus infinity, ids past its end among them."""
    width = len(scores)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=width if width <= 32 * len(mask) else None)
    if len(bits) < width:
        bits = np.pad(bits, (0, width - len(bits)))
    allowed = bits.view(np.bool_)
    if scores.device.type == "cpu":  # torch would wake its other threads for a tenth of a millisecond's work
        return torch.from_numpy(np.where(allowed, scores.numpy(), np.float32(-np.inf)))
    return scores.where(torch.from_numpy(allowed).to(scores.device), -torch.inf)


def _filter(scores: Tensor, params: SamplingParams) -> Tensor:
    """Scores with every token outside `top_k`, `top_p` and `min_p` at minus infinity."""
    if 0 < params.top_k < len(scores):
        least = scores.topk(params.top_k).values[-1]
        scores = scores.masked_fill(scores < least, -torch.inf)
    if params.top_p < 1:
        ordered, ids = scores.sort(descending=True, stable=True)
        chances = ordered.softmax(-1)
        before = chances.cumsum(-1) - chances
        scores = scores.index_fill(0, ids, -torch.inf).scatter(
            0, ids, ordered.masked_fill(before >= params.top_p, -torch.inf)
        )
    if params.min_p > 0:
        scores = scores.masked_fill(scores < scores.max() + math.log(params.min_p), -torch.inf)
    return scores


def _draw(scores: Tensor, place: Place) -> Tensor:
    """The Gumbel-max draw: softmax-distributed over positions and seeds, fixed for this one."""
    if scores.device.type != "cpu":
        every = torch.arange(len(scores), device=scores.device)
        return (scores + noise(place.seed, place.position, every)).argmax()
    # A token so far below that the largest noise can't lift it over the likeliest one needs no noise of its own.
    likeliest = scores.argmax()
    least = scores[likeliest] + noise(place.seed, place.position, likeliest) - _MOST_NOISE
    contenders = (scores >= least).nonzero().squeeze(-1)
    heights = scores[contenders] + noise(place.seed, place.position, contenders)
    return contenders[heights.argmax()]


def _signed(word: int) -> int:
    """The same 64 bits as torch's int64 holds them."""
    return word - (1 << 64) if word >> 63 else word
