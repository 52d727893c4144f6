import subprocess
import sys
from pathlib import Path

import pytest

from agentspec.cache import build_once, cache_folder, is_whole, remove
from agentspec.errors import ConfigError


def build(staging: Path) -> None:
    (staging / "weights").write_bytes(b"12345")
    (staging / "config.json").write_text("{}")


def test_a_folder_is_built_once(tmp_path):
    built = []

    for _ in range(2):
        folder = build_once(tmp_path / "a" / "model", lambda staging: (built.append(staging), build(staging)))

    assert folder == tmp_path / "a" / "model"
    assert len(built) == 1
    assert sorted(file.name for file in folder.iterdir()) == ["agentspec.json", "config.json", "weights"]


@pytest.mark.parametrize("damage", ["cut", "deleted", "never finished"])
def test_a_broken_folder_is_built_anew(tmp_path, damage):
    folder = build_once(tmp_path / "model", build)
    {
        "cut": lambda: (folder / "weights").write_bytes(b"123"),
        "deleted": lambda: (folder / "config.json").unlink(),
        "never finished": lambda: (folder / "agentspec.json").write_text('{"weig'),
    }[damage]()

    assert not is_whole(folder)
    build_once(folder, build)
    assert is_whole(folder)
    assert (folder / "weights").read_bytes() == b"12345"


def test_a_build_that_fails_leaves_nothing_behind(tmp_path):
    def fail(staging: Path) -> None:
        build(staging)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_once(tmp_path / "model", fail)
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".lock"] == []


def test_two_processes_build_one_folder_once(tmp_path):
    script = """
import sys, time
from pathlib import Path
from agentspec.cache import build_once
def build(staging):
    with open(sys.argv[1] + "/log", "a") as log: log.write("built\\n")
    time.sleep(0.5)
    (staging / "weights").write_bytes(b"12345")
print((build_once(Path(sys.argv[1]) / "model", build) / "weights").read_bytes())
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]

    assert [process.communicate()[0] for process in both] == ["b'12345'\n"] * 2
    assert (tmp_path / "log").read_text() == "built\n"


def test_remove_says_whether_there_was_something(tmp_path):
    build_once(tmp_path / "model", build)

    assert [remove(tmp_path / "model"), remove(tmp_path / "model")] == [True, False]
    assert not (tmp_path / "model").exists()


def test_the_cache_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("AGENTSPEC_CACHE", "/elsewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/elsewhere")
    monkeypatch.delenv("AGENTSPEC_CACHE")
    assert cache_folder() == Path("/xdg/agentspec")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "agentspec"
    monkeypatch.setenv("AGENTSPEC_CACHE", "here")
    with pytest.raises(ConfigError, match="AGENTSPEC_CACHE is 'here': give an absolute path"):
        cache_folder()


def test_a_cache_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="set AGENTSPEC_CACHE"):
        build_once(tmp_path / "file" / "model", build)
