import os
import re
import subprocess
import sys

import pytest

import agentspec
from agentspec.cli import main as shell
from agentspec.errors import PromptError

SHARED = {"__init__", "main", "console", "options", "replay_checks", "replay_exact", "replay_options", "replay_text"}


def test_help_lists_one_command_for_each_file(cli, repository):
    shown = cli("--help").stdout
    commands = re.findall(r"^│ ([a-z]+) ", shown.split("Commands", 1)[1], re.MULTILINE)

    assert set(commands) == {file.stem for file in (repository / "agentspec" / "cli").glob("*.py")} - SHARED
    assert max(map(len, shown.splitlines())) <= 80
    assert cli().stdout == shown
    assert "<bool>" not in shown + cli("generate", "--help").stdout + cli("models", "fetch", "--help").stdout


@pytest.mark.parametrize(
    "command", [["generate"], ["explain"], ["replay"], ["convert"], ["bench"], ["models", "fetch"]]
)
def test_help_shows_no_types_of_python(shell, command):
    shown = shell(*command, "--help")[1]
    assert "Usage: agentspec" in shown
    assert "<" not in shown


def test_help_and_version_load_nothing_heavy():
    script = """
import sys
from agentspec.cli.main import app
app(["--version"], standalone_mode=False)
print([name for name in ("torch", "transformers", "llguidance", "langchain_core") if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert shown == f"agentspec {agentspec.__version__}\n[]\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "error: No such command 'nope' (see `agentspec --help`)\n"),
        (["models", "fetch"], "error: Missing argument 'NAME' (see `agentspec models fetch --help`)\n"),
        (
            ["models", "--json", "fetch", "x"],
            "error: Invalid value: --json goes behind fetch (see `agentspec models --help`)\n",
        ),
        (
            ["models", "remove", "x[/]y"],
            "error: no known model is called 'x[/]y'; there are: smollm2-135m, qwen2.5-coder-0.5b, "
            "qwen2.5-coder-1.5b\n",
        ),
    ],
)
def test_bad_input_is_one_line_on_standard_error_and_exit_2(cli, arguments, message):
    done = cli(*arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("trouble", "code", "message"),
    [
        (PromptError("too\nlong"), 2, "error: too long\n"),
        (KeyboardInterrupt(), 130, ""),
        (
            ZeroDivisionError("by zero"),
            1,
            "error: ZeroDivisionError: by zero (a fault of agentspec; `agentspec --debug ...` shows where)\n",
        ),
    ],
)
def test_each_kind_of_trouble_has_its_exit_code(monkeypatch, capsys, trouble, code, message):
    monkeypatch.delenv("AGENTSPEC_DEBUG", raising=False)
    monkeypatch.setattr(sys, "argv", ["agentspec", "models"])
    monkeypatch.setattr("agentspec.cli.models.new_table", lambda *columns, **more: raise_(trouble))

    with pytest.raises(SystemExit) as exit_:
        shell.main()
    assert exit_.value.code == code
    assert capsys.readouterr().err.strip() == message.strip()


def test_debug_keeps_the_traceback(cli):
    done = cli("--debug", "models", "fetch", "nope")

    assert "in fetch\n" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: no known model is called 'nope'")


def test_a_reader_that_stops_early_gets_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "agentspec", "models", "--json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)

    assert done.stderr == ""


def raise_(trouble: BaseException) -> None:
    raise trouble


def test_an_error_shows_what_was_given_as_it_was_without_emoji_or_codes_for_the_terminal(capsys) -> None:
    from agentspec.cli.console import print_error

    print_error("no profile 'computed:zzz:7b' \x1b[31m[bold]")

    assert capsys.readouterr().err == "error: no profile 'computed:zzz:7b' \\x1b[31m[bold]\n"
