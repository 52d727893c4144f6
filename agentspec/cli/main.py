"""The command `agentspec`: each command is one file, registered here by one line.

A command's module may import typer, rich and light modules at its top; what loads torch is imported inside the
function, so that `agentspec --help` answers at once.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import Annotated

import typer

from agentspec import __version__
from agentspec.cli import bench, convert, demo, env, explain, generate, models, replay, serve
from agentspec.cli.console import Command, Group, err, out, print_error

app = typer.Typer(
    cls=Group,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Makes a local coding agent several times faster without changing one token.",
)
app.command("demo", cls=Command)(demo.demo)
app.command("generate", cls=Command)(generate.generate)
app.command("serve", cls=Command)(serve.serve)
app.command("explain", cls=Command)(explain.explain)
app.command("replay", cls=Command)(replay.replay)
app.command("convert", cls=Command)(convert.convert)
app.command("bench", cls=Command)(bench.bench)
app.add_typer(models.app, name="models")
app.command("env", cls=Command)(env.env)


@app.callback(invoke_without_command=True)
def _agentspec(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["AGENTSPEC_DEBUG"] = "1"
    if version:
        out.print(f"agentspec {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        out.print(context.get_help(), markup=False)


def main() -> None:
    """Run the command line and exit: 0 done, 2 bad input or usage, 1 a fault of ours, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal can't show is written out, and ends no report
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _run() -> int:
    from agentspec.errors import AgentSpecError

    try:
        code = app(prog_name="agentspec", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (AgentSpecError, typer.TyperException) as error:
        return _report(error, code=2)
    except (KeyboardInterrupt, typer.Abort):
        err.print("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains again as it exits
        return 141
    except Exception as error:
        return _report(error, code=1)


def _report(error: Exception, *, code: int) -> int:
    if os.environ.get("AGENTSPEC_DEBUG"):
        traceback.print_exception(error)
    message = _usage(error) if isinstance(error, typer.TyperException) else str(error)
    if code == 1:
        message = f"{type(error).__name__}: {message} (a fault of agentspec; `agentspec --debug ...` shows where)"
    print_error(message)
    return code


def _usage(error: typer.TyperException) -> str:
    """What is wrong with a command line, and how to get that command's help."""
    context: typer.Context | None = getattr(error, "ctx", None)
    message = error.format_message()
    return message if context is None else f"{message.rstrip('.')} (see `{context.command_path} --help`)"
