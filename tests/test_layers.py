"""The layers of the package, read from its imports: those inside functions count, those for type checkers only too.

A module may import from its own row and the rows above it, so that the core can be read, tested and replaced without
what is built on it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROWS = [
    "errors config segments segment_reader segmenter draft verify cache figures own_file progress".split(),
    ["grammar.base", "models.base", "places", "trace", "acceptance", "cost", "probes", "control"],
    ["grammar", "sampling", "models", "proposers"],
    ["engine"],
    ["chat", "testing"],
    ["local", "replay", "explain", "bench"],
    ["chat_models", "langchain", "integrations", "server", "cli", "__main__"],
]
ONLY_IN = {  # third-party package: the only places that may import it
    "torch": ["sampling", "models", "proposers.model", "testing"],
    "transformers": ["models"],
    "llguidance": ["grammar"],
    "outlines": ["grammar"],
    "langchain_core": ["chat_models", "langchain", "integrations.langchain"],
    "typer": ["cli"],
    "fastapi": ["server"],
    "anthropic": ["server"],
    "openai": ["server"],
    "uvicorn": ["server"],
}
PACKAGE = Path(__file__).resolve().parent.parent / "agentspec"
MODULES = {
    ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted(PACKAGE.rglob("*.py"))
    if file != PACKAGE / "__init__.py"  # the public surface: it loads each name from its home, when it is asked for
}


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    for_types: bool  # under `if TYPE_CHECKING:`, so never run


def imports(file: Path) -> list[Import]:
    return list(_imports(ast.parse(file.read_text()), for_types=False))


def _imports(node: ast.AST, *, for_types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, node.lineno, for_types) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        inside = [name for name in whole if name.removeprefix("agentspec.") in MODULES]
        yield from (Import(name, node.lineno, for_types) for name in inside or [node.module or ""])
    elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        for child in node.body:
            yield from _imports(child, for_types=True)
        for child in node.orelse:
            yield from _imports(child, for_types=for_types)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _imports(child, for_types=for_types)


def within(module: str, places: list[str]) -> bool:
    return any(module == place or module.startswith(place + ".") for place in places)


def row(module: str) -> int:
    """The row of the longest entry that covers the module: `models.base` is in row 2, the rest of `models` in 3."""
    entries = [
        (len(place), index) for index, places in enumerate(ROWS, 1) for place in places if within(module, [place])
    ]
    assert entries, f"agentspec/{module} is in no layer: add it to ROWS"
    return max(entries)[1]


def ours(module: str) -> list[Import]:
    return [
        Import(found.module.removeprefix("agentspec."), found.line, found.for_types)
        for found in imports(MODULES[module])
        if found.module.startswith("agentspec.")
    ]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_from_its_own_row_and_above(module):
    wrong = [f"line {found.line}: {found.module}" for found in ours(module) if row(found.module) > row(module)]

    assert wrong == []


@pytest.mark.parametrize("module", MODULES)
def test_each_third_party_package_has_its_place(module):
    wrong = [
        f"line {found.line}: {found.module}"
        for found in imports(MODULES[module])
        for package, places in ONLY_IN.items()
        if within(found.module, [package]) and not found.for_types and not within(module, places)
    ]

    assert wrong == []


def test_the_engine_knows_no_proposer_by_name_and_the_frontends_not_each_other():
    engine = [found.module for name in MODULES if within(name, ["engine"]) for found in ours(name)]
    assert {name for name in engine if within(name, ["proposers"])} <= {"proposers.base"}

    chat = [found.module for found in ours("chat_models")] if "chat_models" in MODULES else []
    assert not any(within(name, ["cli"]) for name in chat)
    cli = [found.module for name in MODULES if within(name, ["cli"]) for found in ours(name)]
    assert not any(within(name, ["chat_models"]) for name in cli)


def test_the_first_two_rows_and_the_oracle_work_without_torch():
    first = [f"agentspec.{name}" for name in MODULES if row(name) <= 2 or name == "replay.oracle"]
    script = f"import sys, importlib\nsys.modules['torch'] = None\n[importlib.import_module(name) for name in {first}]"

    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize("module", MODULES)
def test_files_and_functions_are_short_and_no_module_is_a_grab_bag(module):
    text = MODULES[module].read_text()
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]

    assert len(text.splitlines()) <= 300
    assert [n.name for n in functions if (n.end_lineno or 0) - n.lineno + 1 > 60] == []
    assert not {"utils", "util", "helpers", "common", "misc"} & set(module.split("."))


def test_the_reader_of_imports_sees_all_kinds(tmp_path):
    source = """
import torch
from agentspec import errors, Engine
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from transformers import PreTrainedModel
def late():
    from agentspec.models.base import Row
"""
    (tmp_path / "sample.py").write_text(source)

    assert [(found.module, found.for_types) for found in imports(tmp_path / "sample.py")] == [
        ("torch", False),
        ("agentspec.errors", False),
        ("typing", False),
        ("transformers", True),
        ("agentspec.models.base", False),
    ]
