import subprocess
import sys

import pytest

import agentspec


def test_these_names_and_no_others_are_public():
    assert agentspec.__all__ == ["ChatAgentSpec", "Engine", "EngineConfig", "SamplingParams", "__version__"]
    assert dir(agentspec) == sorted([*agentspec.__all__, "errors"])


@pytest.mark.parametrize("name", agentspec.__all__)
def test_every_public_name_is_there_and_documented(name):
    found = getattr(agentspec, name)

    assert isinstance(found, str) or (found.__name__ == name and found.__doc__)


def test_a_wrong_name_is_an_attribute_error_and_the_errors_are_in_reach():
    with pytest.raises(AttributeError, match="module 'agentspec' has no attribute 'engine_'"):
        _ = agentspec.engine_
    assert issubclass(agentspec.errors.PromptTooLongError, agentspec.errors.AgentSpecError)


def test_importing_agentspec_is_quick_because_nothing_heavy_comes_with_it():
    script = """
import sys, time
start = time.perf_counter()
import agentspec
took = time.perf_counter() - start
heavy = ("torch", "transformers", "numpy", "pydantic", "langchain_core", "llguidance", "rich", "typer")
print([name for name in heavy if name in sys.modules])
agentspec.SamplingParams(temperature=1.0)
print("torch" in sys.modules, took)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded, late, took = shown.split("\n")[0], *shown.split("\n")[1].split()

    assert (loaded, late) == ("[]", "False")
    assert float(took) < 0.5  # a few ms; the bound only catches work done at import, not a busy machine
