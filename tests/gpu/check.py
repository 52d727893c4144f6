"""Checks the target on one GPU: exactness, cost of a forward by rows, plain against speculative. Under five minutes.

Run `python tests/gpu/check.py MODEL`, a folder or hub id. Exits 1 where something is wrong, 2 without a GPU.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence

import torch
from transformers import AutoModelForCausalLM

from agentspec.draft import EMPTY, Draft
from agentspec.models.base import Row
from agentspec.models.cost import measure_cost
from agentspec.models.hf import HFTarget
from agentspec.models.load import load_target
from agentspec.models.tokenizer import load_tokenizer
from agentspec.verify import verify

PROMPT = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\n" * 6
LENGTH = 256


def guess(tokens: Sequence[int], most: int) -> Draft:
    """What followed the last two tokens when they last stood together."""
    for end in range(len(tokens) - 1, 2, -1):
        if tokens[end - 2 : end] == tokens[-2:]:
            return Draft.chain(tokens[end : end + most], "suffix")
    return EMPTY


def decode(target: HFTarget, prompt: list[int], most: int) -> tuple[list[int], float, int]:
    """Greedy output of `LENGTH` tokens, seconds after the prompt, and forwards."""
    slot, tokens, forwards = target.open(), list(prompt), 0
    first = Row(slot, prompt[:-1])
    target.forward([first])
    slot.commit(first, ())
    torch.cuda.synchronize()
    start = time.perf_counter()
    while len(tokens) < len(prompt) + LENGTH:
        row = Row(slot, slot.sync(tokens), guess(tokens, most) if most else EMPTY)
        outcome = verify(row.draft, target.forward([row]).logits.argmax(-1).tolist())
        slot.commit(row, outcome.path)
        tokens += [*(row.draft.tokens[node] for node in outcome.path), outcome.bonus]
        forwards += 1
    return tokens[len(prompt) :][:LENGTH], time.perf_counter() - start, forwards


def exactness(model: str, prompt: list[int]) -> bool:
    """Float32 logits against transformers' own, for a prompt in two parts and a chain."""
    target = load_target(model, device="cuda", dtype="float32")
    own = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).to("cuda").eval()
    slot = target.open()
    part = Row(slot, prompt[:50])
    target.forward([part])
    slot.commit(part, ())
    worst, same = 0.0, True
    for _ in range(6):  # the fixed widths are captured on the way
        ours = target.forward([Row(slot, prompt[50:53], Draft.chain(prompt[53:58], "check"))]).logits
        with torch.inference_mode():
            wanted = own(input_ids=torch.tensor([prompt[:58]], device="cuda")).logits[0, 52:]
        worst = max(worst, (ours - wanted).abs().max().item())
        same = same and ours.argmax(-1).tolist() == wanted.argmax(-1).tolist()
    print(f"exactness, float32: largest difference {worst:.2g}, same choice everywhere: {same}")
    plain, _, _ = decode(target, prompt, 0)
    speculative, _, _ = decode(target, prompt, 7)
    print(f"plain and speculative greedy tokens equal, float32: {plain == speculative}")
    return same and worst < 1e-2 and plain == speculative


def main(arguments: list[str]) -> int:
    """Run all checks and say what they found."""
    if not torch.cuda.is_available():
        print("there is no GPU here: nothing was checked")
        return 2
    if len(arguments) != 1:
        print("give one model: a folder or a hub id")
        return 2
    warnings.simplefilter("default")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments[0]}")
    prompt = [int(token) for token in load_tokenizer(arguments[0])(PROMPT)["input_ids"]]
    right = exactness(arguments[0], prompt)
    target = load_target(arguments[0], device="cuda")
    cost = measure_cost(target, repeats=15)
    for width, seconds in cost.items():
        print(f"forward of {width:2} tokens: {seconds * 1e3:6.2f} ms, {seconds / cost[1]:.2f} times one")
    for most in (0, 7):
        decode(target, prompt, most)
        tokens, seconds, forwards = decode(target, prompt, most)
        what = "speculative" if most else "plain"
        print(f"{what:11}: {len(tokens) / seconds:6.1f} tokens/s, {len(tokens) / forwards:.2f} a forward")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
