"""`agentspec serve`: the endpoint that OpenAI's and Anthropic's clients talk to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentspec.cli.console import err
from agentspec.cli.options import DraftModel, Model, ToolFormat
from agentspec.config import EngineConfig
from agentspec.server.settings import ServerSettings

_KEY = "AGENTSPEC_API_KEY"


def serve(
    model: Model = None,
    draft: DraftModel = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="0: any that is free.")] = 8000,
    api_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", envvar=_KEY, show_envvar=True, help="Clients must show it. Needed with --host."),
    ] = None,
    served_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What clients call the model; repeatable. Default: its own."),
    ] = None,
    max_running: Annotated[int, typer.Option(metavar="N", help="Answers that share forwards.")] = 8,
    max_queue: Annotated[int, typer.Option(metavar="N", help="Answers that may wait beside those.")] = 64,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="For one request.")] = 600.0,
    grace: Annotated[float, typer.Option(metavar="SECONDS", help="For running requests, after Ctrl-C.")] = 10.0,
    cors: Annotated[list[str] | None, typer.Option(metavar="ORIGIN", help="Whose pages may call; repeatable.")] = None,
    no_speculate: Annotated[bool, typer.Option("--no-speculate", help="Plain decoding: the same tokens.")] = False,
    tool_format: ToolFormat = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append each request, for `agentspec replay`.")
    ] = None,
    record_redact: Annotated[
        bool, typer.Option("--record-redact", help="Record token ids and digests, no text.")
    ] = False,
) -> None:
    """Serve the model to OpenAI's and Anthropic's clients, until Ctrl-C."""
    from agentspec.chat.formats.registry import check_name
    from agentspec.models.embedded import DEFAULT
    from agentspec.models.named import check_models

    settings = ServerSettings(
        model_names=tuple(served_name or ()) or (model or DEFAULT,),
        host=host,
        port=port,
        api_key=api_key,
        max_queue=max_queue,
        cors=tuple(cors or ()),
        request_timeout_s=timeout,
        grace_s=grace,
        record=record,
        record_redact=record_redact,
    )
    config = EngineConfig(max_running=max_running)
    if tool_format is not None:
        check_name(tool_format)
    check_models(model, draft)
    from agentspec.local.engine import Engine
    from agentspec.server.run import run

    err.print(f"loading {model or DEFAULT} ...", style="dim")
    run(
        lambda: Engine.load(model, draft=draft, speculate=not no_speculate, tool_format=tool_format, config=config),
        settings,
        config=config,
        tell=lambda words: err.print(words, style="dim", markup=False, highlight=False),
    )
