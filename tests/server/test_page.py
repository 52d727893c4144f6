"""The page at `/`, its state, and both together in a real browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from re import findall
from types import SimpleNamespace

import pytest

from agentspec.config import SamplingParams
from agentspec.draft import Draft
from agentspec.explain.styles import STYLES
from agentspec.local.result import Result, StreamEvent, Usage
from agentspec.segments import Segment
from agentspec.server.desk import Asked, Running
from agentspec.server.page.board import Board
from agentspec.server.page.routes import source_rules
from agentspec.trace import Stats, StepRecord

API = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "A secret prompt."}], "max_tokens": 12}
PERSON = {
    "type": "object",
    "properties": {"name": {"enum": ["Ann", "Bob"]}},
    "required": ["name"],
    "additionalProperties": False,
}


def record(text: str, draft: str = "", accepted: int = 0, *, ms: float = 10.0) -> StepRecord:
    """A round that wrote a text, a token a letter."""
    nodes = Draft.chain(tuple(draft.encode()), "suffix", 0.5)
    segments = (Segment.CODE,) * len(nodes)
    tokens, path = tuple(text.encode()), tuple(range(accepted))
    return StepRecord(0, Segment.PROSE, nodes, segments, path, tokens, 1, 1 + len(nodes), 1.0, 5.0, ms)


def answered(board: Board, rounds: list[StepRecord]) -> None:
    """Tell the board of a request with one answer."""
    stats, tokens = Stats(), tuple(token for each in rounds for token in each.tokens)
    for each in rounds:
        stats.add(each)
    text = bytes(tokens).decode()
    result = Result(tokens, text, {}, "stop", Usage(3, len(tokens)), stats, 0, rounds=tuple(rounds))
    running = Running(Asked(API, "A secret prompt.", SamplingParams(), {}))
    board.started(running)
    board.wrote(running, StreamEvent(text, (), tokens, result=result))
    board.ended(running, None)


def spell(token: int) -> bytes:
    return bytes([token])


def test_an_answer_is_told_token_by_token_with_what_was_rejected_in_its_stead():
    board = Board()
    answered(board, [record("a"), record("bc", "bx", 1)])

    told = board.answer(board.wire["answers"][0]["id"]).pieces(spell)
    assert [(piece["text"], piece["source"]) for piece in told["pieces"]] == [
        ("a", "target"),
        ("b", "suffix"),
        ("c", "target"),
    ]
    assert [(branch["place"], branch["text"], branch["nodes"]) for branch in told["rejected"]] == [(2, "x", 1)]
    assert board.wire["segments"]["code"] == {
        "tokens": 2,
        "forwards": 0,
        "drafted": 2,
        "accepted": 1,
        "tokens_per_forward": None,
    }


def test_speed_against_plain_is_estimated_from_rounds_without_a_draft():
    board = Board()
    answered(board, [record("a"), record("bcd", "bcx", 2, ms=12.0)])
    assert board.wire["totals"]["speedup"] is None  # no such round was seen yet

    answered(board, [record("a"), *[record("b", ms=9.0)] * 5])  # of which 1 ms went into asking for a draft
    assert board.wire["totals"]["plain_token_ms"] == 8.0
    first, last = reversed(board.wire["answers"])
    assert (first["speedup"], last["speedup"]) == (2.0, 0.89)  # 3 * 8 / 12, and 5 * 8 / (5 * 9)


def test_what_is_kept_is_bounded_and_holds_no_prompt():
    board = Board()
    for _ in range(25):
        answered(board, [record("abcdefgh", "abcdefg", 7)] * 300)

    answers = board.wire["answers"]
    assert len(answers) == 20
    told = board.answer(answers[0]["id"]).pieces(spell)
    assert (len(told["pieces"]), told["left_out"], answers[0]["tokens"]) == (2048, 352, 2400)
    assert "secret" not in str(board.wire)


def test_the_colours_are_those_of_explain():
    rules = "\n".join(source_rules())

    assert all(f".source-{name} {{ color: {style.light};" in rules for name, style in STYLES.items())
    assert all(f".source-{name} {{ color: {style.dark}; }}" in rules for name, style in STYLES.items())


def test_with_a_key_only_the_page_itself_is_open(serve):
    endpoint = serve(api_key="k")

    page = endpoint.get("/")
    for path in findall(r'(?:href|src)="([^"]+)"', page.text):
        assert endpoint.get(f"/{path}").status_code == 200, path
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert endpoint.get("/page/state").status_code == 401
    assert endpoint.get("/page/state", headers={"Authorization": "Bearer k"}).json()["status"] == "ok"
    assert endpoint.get("/page/answers/none", headers={"Authorization": "Bearer k"}).status_code == 404


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Loads a page in headless Chromium; its document after the script ran, and what it logged."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium here")
    folder = tmp_path_factory.mktemp("chromium")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={folder}"]

    def load(url: str) -> SimpleNamespace:
        command = [program, *flags, "--virtual-time-budget=4000", "--dump-dom", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return SimpleNamespace(dom=done.stdout, log=[line for line in done.stderr.splitlines() if "CONSOLE" in line])

    return load


def test_a_browser_shows_the_tokens_of_the_last_answer_by_source(serve, browser):
    endpoint = serve()
    for _ in range(2):
        text = endpoint.post(API, {**HELLO, "json_schema": PERSON}).json()["choices"][0]["message"]["content"]

    found = browser(endpoint.url)
    spans = findall(r'<span class="(source-\w+)(?: starts)?">([^<]*)</span>', found.dom)
    assert "".join(piece for _, piece in spans).startswith(text)
    assert ("source-grammar", '{"') in spans
    assert len(findall(r'<details class="answer"', found.dom)) == 2
    assert '<b class="source-grammar">grammar</b>' in found.dom
    assert "secret" not in found.dom
    assert found.log == []


def test_a_browser_is_asked_for_the_key(serve, browser):
    found = browser(serve(api_key="k").url)

    assert '<form id="door">' in found.dom
    assert '<main id="board" hidden="">' in found.dom


def test_the_page_names_no_other_host(repository: Path):
    files = (repository / "agentspec" / "server" / "page").glob("*.*")
    texts = {file.name: file.read_text() for file in files if file.suffix in (".html", ".js", ".css")}

    assert len(texts) == 3
    assert [name for name, text in texts.items() if "://" in text] == []
