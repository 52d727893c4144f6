"""`agentspec bench`: our decoding beside transformers', on the same weights and prompts."""

from __future__ import annotations

from statistics import median, quantiles
from typing import Annotated, Any

import typer

from agentspec.cli.console import err, new_table, out, print_json
from agentspec.cli.options import DraftModel, Json, Model
from agentspec.errors import ConfigError
from agentspec.progress import progress_bar

_SHORT = {
    "plain": "plain",
    "agentspec": "agentspec",
    "agentspec with draft": "+ draft",
    "transformers": "transf.",
    "transformers lookup": "+ lookup",
    "transformers assistant": "+ assist.",
}
_BELOW = {"plain": "our plain", "transformers": "transf.", "best speculative of transformers": "its best spec."}
_ABOVE = ("agentspec", "agentspec with draft", "plain")


def bench(
    model: Model = None,
    draft: DraftModel = None,
    against: Annotated[
        str | None, typer.Option(metavar="LIBRARY", help="transformers: run it beside, on a second copy of the models.")
    ] = None,
    tasks: Annotated[
        str, typer.Option(metavar="LIST", help="Of tool, rewrite, json and prose, with commas.")
    ] = "tool,rewrite,json,prose",
    each: Annotated[int | None, typer.Option(metavar="N", help="Only the first N tasks of each category.")] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="How often each task is run.")] = 1,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens of an answer.")] = 256,
    cost: Annotated[bool, typer.Option("--cost", help="Only measure what a forward costs by its tokens.")] = False,
    packing: Annotated[
        str, typer.Option(metavar="KIND", help="With --cost, of CPU weights: half (the default) or float32.")
    ] = "half",
    as_json: Json = False,
) -> None:
    """Measure decoding speed, task by task, all modes in turn."""
    if against not in (None, "transformers"):
        raise ConfigError(f"--against takes transformers, not {against!r}")
    if packing not in ("half", "float32"):
        raise ConfigError(f"--packing takes half or float32, not {packing!r}")
    for name, value, least in (("--runs", runs, 1), ("--max-tokens", max_tokens, 2), ("--each", each, 1)):
        if value is not None and value < least:
            raise ConfigError(f"{name} must be at least {least}, not {value}")
    from agentspec.models.embedded import resolve
    from agentspec.models.named import check_models

    check_models(model, draft)
    if cost:
        _cost(str(resolve(model)), half=packing == "half", against=against is not None, as_json=as_json)
        return
    names = (str(resolve(model)), None if draft is None else str(resolve(draft)))
    report, complete = _bench(names, (tasks, each), runs=runs, max_tokens=max_tokens, against=against is not None)
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not all(found["identical"] for found in report["categories"].values()):
        err.print("LOSSLESSNESS BROKEN: an answer differs from plain decoding's: please report it", style="bold red")
        raise typer.Exit(1)
    if not complete:
        err.print("interrupted: the report holds the tasks before")
        raise typer.Exit(130)


def _bench(
    names: tuple[str, str | None], chosen: tuple[str, int | None], *, runs: int, max_tokens: int, against: bool
) -> tuple[dict[str, Any], bool]:
    """The report, and whether all of it was measured."""
    from agentspec.bench.report import NOTES, measurement_wire, summarize
    from agentspec.bench.tasks import read_tasks

    categories, each = chosen
    tasks = read_tasks([name.strip() for name in categories.split(",") if name.strip()], each)
    if not tasks:
        raise ConfigError("--tasks names no task")
    from agentspec.bench.measure import Contest
    from agentspec.models.device import describe_device

    contest = Contest.load(*names, against=against)
    try:
        with progress_bar() as bar:
            task = bar.add_task("measuring", total=runs * len(tasks))
            found = contest.run(tasks, runs=runs, max_tokens=max_tokens, done=lambda: bar.advance(task))
    finally:
        contest.close()
    report = {
        "model": names[0],
        "draft": names[1],
        **describe_device(),
        "runs": runs,
        "max_tokens": max_tokens,
        "notes": list(NOTES.values()) if against else [NOTES["rate"]],
        "categories": summarize(found),
        "measurements": [measurement_wire(each) for each in found],
    }
    return report, len(found) == runs * len(tasks) * len(contest.modes)


def _print(report: dict[str, Any]) -> None:
    from agentspec.bench.tasks import CATEGORIES

    categories = report["categories"]
    if not categories:
        out.print("nothing was measured")
        return
    modes = [mode for mode in _SHORT if mode in next(iter(categories.values()))["rates"]]
    table = new_table("decoding, tokens/s", *(short := [_SHORT[mode] for mode in modes]), numeric=short)
    for name, found in categories.items():
        table.add_row(CATEGORIES[name], *(_figure(found["rates"][mode]) for mode in modes))
    out.print(table)
    out.print()
    for mode in _ABOVE:
        print_ratios(mode, categories)
    _print_rounds(categories)
    for note in report["notes"]:
        out.print(f"- {note}", style="dim")


def print_ratios(mode: str, categories: dict[str, dict[str, Any]]) -> None:
    """How many times faster a mode of ours is than others: decoding, and end to end in brackets."""
    from agentspec.bench.tasks import CATEGORIES

    some = next(iter(categories.values()))["ratios"]
    others = [other for other in _BELOW if f"{mode} / {other}" in some]
    if not others:
        return
    short = [_BELOW[other] for other in others]
    table = new_table(f"{mode}, times (end to end)", *short, numeric=short)
    for name, found in categories.items():
        decoding, whole = found["ratios"], found["end_to_end_ratios"]
        keys = [f"{mode} / {other}" for other in others]
        table.add_row(CATEGORIES[name], *(f"{_figure(decoding[key], 'x')} ({_figure(whole[key])})" for key in keys))
    out.print(table)
    out.print()


def _print_rounds(categories: dict[str, dict[str, Any]]) -> None:
    """What our rounds are made of: tokens a forward, and the shares of drafting, picks and all else but the forward."""
    from agentspec.bench.tasks import CATEGORIES

    numeric = ("tokens", "a forward", "drafting", "picks", "rest")
    table = new_table("our rounds", "mode", *numeric, "identical", numeric=numeric)
    for name, found in categories.items():
        for mode, per_forward in found["tokens_per_forward"].items():
            drafting, picks, outside = (found[part][mode] for part in ("drafting", "picks", "outside_forwards"))
            shares = (drafting, picks, None if outside is None else outside - picks)
            table.add_row(
                CATEGORIES[name],
                _SHORT[mode],
                f"{found['tokens']:,}",
                f"{per_forward:.1f}",
                *("-" if share is None else f"{share:.1%}" for share in shares),
                "yes" if found["identical"] else "NO",
            )
    out.print(table)
    out.print()


def _figure(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.2f}{unit}" if unit else f"{value:.1f}"


def _forward_costs(name: str, context: int, *, half: bool, against: bool) -> dict[str, dict[int, list[float]]]:
    from agentspec.models.cost import take_turns, target_step
    from agentspec.models.load import load_target

    steps = {"agentspec": target_step(load_target(name, half=half), context)}
    if against:
        from agentspec.models.reference import Reference

        steps["transformers"] = Reference.load(name).step(context)
    return take_turns(steps)


def _cost(name: str, *, half: bool, against: bool, as_json: bool) -> None:
    """What a forward costs by its tokens behind a context of 512, ours and theirs in turn."""
    from agentspec.engine.thread import MODEL_THREAD

    context = 512
    took = MODEL_THREAD.call(lambda: _forward_costs(name, context, half=half, against=against))
    found = {whose: {width: median(each) for width, each in costs.items()} for whose, costs in took.items()}
    if as_json:
        told = {"model": name, "context": context, "packing": "half" if half else "float32"}
        cost_ms = {
            whose: {str(w): round(1000 * each, 3) for w, each in costs.items()} for whose, costs in found.items()
        }
        print_json({**told, "cost_ms": cost_ms, "quartiles_ms": _quartiles_ms(took)})
        return
    columns = [column for whose in found for column in (f"{whose}, ms", "relative")]
    table = new_table("tokens in a forward", *columns, numeric=("tokens in a forward", *columns))
    for width in next(iter(found.values())):
        cells = (
            cell
            for costs in found.values()
            for cell in (f"{1000 * costs[width]:.1f}", f"{costs[width] / costs[1]:.2f}")
        )
        table.add_row(str(width), *cells)
    out.print(table)


def _quartiles_ms(took: dict[str, dict[int, list[float]]]) -> dict[str, dict[str, list[float]]]:
    """The middle half of the forwards of each width: how sure a cost is, for `agentspec replay --cost`."""
    return {
        whose: {
            str(width): [round(1000 * quantiles(each, n=4, method="inclusive")[end], 3) for end in (0, 2)]
            for width, each in costs.items()
        }
        for whose, costs in took.items()
    }
