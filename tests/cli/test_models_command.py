import json


def test_models_lists_what_is_known_in_80_columns(cli, cache):
    lines = [line.rstrip() for line in cli("models").stdout.splitlines()]

    assert lines == [
        "name                    licence        fetch      disk  here",
        "smollm2-135m (default)  Apache-2.0     93 MB    270 MB  no",
        "qwen2.5-coder-0.5b      Apache-2.0    530 MB  1,270 MB  no",
        "qwen2.5-coder-1.5b      Apache-2.0  1,120 MB  3,570 MB  no",
    ]


def test_models_as_json_says_where_each_would_be(cli, cache):
    entry = json.loads(cli("models", "--json").stdout)[0]

    assert entry == {
        "name": "smollm2-135m",
        "title": "SmolLM2-135M-Instruct",
        "licence": "Apache-2.0",
        "default": True,
        "download_bytes": 93_000_000,
        "disk_bytes": 270_000_000,
        "here": False,
        "path": str(cache / "models" / "smollm2-135m"),
    }


def test_removing_what_is_not_here_is_no_error(cli, cache):
    assert cli("models", "remove", "smollm2-135m").stdout == "smollm2-135m was not here\n"
    assert json.loads(cli("models", "remove", "smollm2-135m", "--json").stdout) == {
        "name": "smollm2-135m",
        "removed": False,
    }
