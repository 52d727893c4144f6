import json
import platform

import torch

import agentspec


def test_env_holds_what_a_bug_report_needs(cli, cache):
    report = json.loads(cli("env", "--json").stdout)

    assert report["agentspec"] == agentspec.__version__
    assert report["python"] == platform.python_version()
    assert report["torch"] == torch.__version__
    assert report["device"] in {"cpu", "cuda", "mps"}
    assert report["cores"] >= 1
    assert report["cache_folder"] == str(cache)
    shown = cli("env").stdout
    assert all(name.replace("_", " ") in shown for name in report)
    assert not [line for line in shown.splitlines() if line != line.rstrip()]
