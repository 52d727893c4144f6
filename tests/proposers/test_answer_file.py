import json
import logging
from pathlib import Path

import pytest
from toy_vocabulary import TOKENS, TV

from agentspec.errors import ConfigError
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.proposers.answer_file import AnswerFile
from agentspec.proposers.answers import AnswerStore


def keep(path: Path, *answers: tuple[str, list[int]], capacity: int = 1000) -> None:
    file = AnswerFile(path, TV, capacity=capacity)
    store = AnswerStore(keep=file.append)
    for caller, answer in file.read():
        store.recall(caller, answer)
    for caller, answer in answers:
        store.add(caller, answer)
    file.close()


def test_answers_come_back_by_caller_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.jsonl"
    keep(path, ("ann", [1, 2, 3]), ("", [4]))
    keep(path, ("ann", [5]))
    assert AnswerFile(path, TV).read() == [("ann", [1, 2, 3]), ("", [4]), ("ann", [5])]
    assert path.stat().st_mode & 0o077 == 0  # nobody else's to read


def test_the_file_keeps_the_latest_answers_only(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    keep(path, *(("", [number] * 10) for number in range(100)), capacity=30)
    assert AnswerFile(path, TV, capacity=30).read() == [("", [number] * 10) for number in (97, 98, 99)]
    assert len(path.read_text().splitlines()) <= 1 + 2 * 3


@pytest.mark.parametrize(
    "line",
    ["torn", "{}", "[" * 100_000, "[]", '{"caller": 1, "tokens": [1]}', '{"caller": "", "tokens": [99999]}', "\udcff"],
)
def test_a_line_that_cannot_be_read_costs_that_answer_only(
    line: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "answers.jsonl"
    keep(path, ("", [1]))
    with path.open("a", errors="surrogateescape") as file:
        file.write(line + "\n")
    keep(path, ("", [2]))
    assert AnswerFile(path, TV).read() == [("", [1]), ("", [2])]
    assert "1 of 2 lines left out" in caplog.text


def test_another_tokenizer_format_or_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    keep(path, ("", [1]))
    other = Vocabulary([*TOKENS[:-1], b"other"], special=TV.special, eos=TV.eos)
    with pytest.raises(ConfigError, match="another tokenizer"):
        AnswerFile(path, other).read()
    head = json.loads(path.read_text().splitlines()[0])
    path.write_text(json.dumps({**head, "version": 9}) + "\n")
    with pytest.raises(ConfigError, match="has format 9"):
        AnswerFile(path, TV).read()
    path.write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="is not a file of earlier answers"):
        AnswerFile(path, TV).read()
    path.write_text("my diary\n")
    with pytest.raises(ConfigError, match="is not a file of earlier answers"):
        AnswerFile(path, TV).read()
    assert path.read_text() == "my diary\n"
    with pytest.raises(ConfigError, match="can't be read"):
        AnswerFile(tmp_path, TV).read()


def test_a_file_that_cannot_be_written_is_warned_about_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    file = AnswerFile(tmp_path / "file" / "answers.jsonl", TV)
    with caplog.at_level(logging.WARNING):
        file.append("", [1])
        file.append("", [2])
        file.close()
    assert caplog.text.count("can't be written") == 1


def test_a_file_of_another_tokenizer_that_came_meanwhile_is_not_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "answers.jsonl"
    file = AnswerFile(path, Vocabulary([*TOKENS[:-1], b"other"], special=TV.special, eos=TV.eos))
    assert file.read() == []
    keep(path, ("", [1]))
    file.append("", [2])
    file.append("", [3])
    file.close()
    assert AnswerFile(path, TV).read() == [("", [1])]
    assert caplog.text.count("was written with another tokenizer") == 1


def test_an_empty_file_is_new_and_a_torn_last_line_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.touch()
    keep(path, ("", [1]), ("", [2]))
    path.write_bytes(path.read_bytes()[:-4])
    keep(path, ("", [3]))
    assert AnswerFile(path, TV).read() == [("", [1]), ("", [3])]
