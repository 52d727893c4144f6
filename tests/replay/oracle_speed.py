"""How long `agentspec replay --oracle` takes for 100 answers of 500 tokens.

Run by hand, on a machine that does nothing else:

    python tests/replay/oracle_speed.py [--tokenizer NAME|FILE]

The answers are pieces of this repository's pages and sources: every other one is a call that writes a file, behind a
result that shows a piece of another one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from agentspec.models.tokenizer_file import find_tokenizer

TURNS, TOKENS = 100, 450  # of an answer's text, at least: with frames and ends some 500
FILES = ("docs/*.md", "agentspec/**/*.py")
PARAMETERS = {"path": {"type": "string"}, "text": {"type": "string"}}
WRITE = {
    "type": "function",
    "function": {
        "name": "write_file",
        "parameters": {"type": "object", "properties": PARAMETERS, "required": [*PARAMETERS]},
    },
}


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--tokenizer")
    name = given.parse_args().tokenizer
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.jsonl")
        texts = pieces(Path(__file__).parents[2], find_tokenizer(name))
        trace.write_text("".join(json.dumps(row) + "\n" for row in rows(texts)))
        command = ["-m", "agentspec", "replay", "--oracle", "--cost", "computed:h100:7b:bf16", "--json", str(trace)]
        start = perf_counter()
        done = subprocess.run(
            [sys.executable, *command, *(["--tokenizer", name] if name else [])],
            check=True,
            capture_output=True,
            text=True,
        )
        seconds = perf_counter() - start
    total = json.loads(done.stdout)["total"]
    print(f"{total['turns']} turns, {total['tokens']} tokens, {total['forwards']} forwards: {seconds:.1f} s")


def pieces(repository: Path, tokenizer) -> Iterator[str]:
    """Texts of so many tokens, or few less, one after another from each file."""
    for pattern in FILES:
        for file in sorted(repository.glob(pattern)):
            piece: list[str] = []
            for line in file.read_text().splitlines(keepends=True):
                piece.append(line)
                if len(tokenizer.encode("".join(piece), add_special_tokens=False)) >= TOKENS:
                    yield "".join(piece)
                    piece = []


def rows(texts: Iterator[str]) -> Iterator[dict]:
    """A conversation each."""
    for turn in range(TURNS):
        shown, text = next(texts), next(texts)
        arguments = json.dumps({"path": f"{turn}.txt", "text": text}, ensure_ascii=False)
        call = {"id": "1", "type": "function", "function": {"name": "write_file", "arguments": arguments}}
        said = {"content": None, "tool_calls": [call]} if turn % 2 else {"content": text}
        asked = [{"role": "user", "content": f"What is in this?\n{shown}"}]
        yield {"messages": [*asked, {"role": "assistant", **said}], "tools": [WRITE]}


if __name__ == "__main__":
    main()
