"""Rows of other shapes than a conversation's."""

import json

import pytest

from agentspec.errors import TraceError
from agentspec.replay.readers.toolcalls import json_schema
from agentspec.replay.traces import read_row

BFCL = {
    "id": "b1",
    "question": [[{"role": "user", "content": "Add"}], [{"role": "user", "content": "Again"}]],
    "function": [{"name": "math.add", "description": "d", "parameters": {"type": "dict", "properties": {}}}],
    "ground_truth": [],
}
EDIT = {"id": "e1", "instruction": "Rename f.", "context": "", "input": "def f():\n    pass\n", "language": "python"}
PROMPT = {"id": "p1", "turns": ["Why?", "And then?"], "category": "humanities"}


def one(row):
    (turn,) = read_row(row, "file", 7)
    return turn


def test_a_function_call_task_is_its_first_turn_which_must_call():
    turn = one(BFCL)

    assert (turn.trace_id, turn.index, turn.file, turn.line) == ("b1", 1, "file", 7)
    assert (turn.messages, turn.called, turn.category) == (tuple(BFCL["question"][0]), True, "tool call")
    assert turn.tools[0]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_python_names_of_types_become_json_schemas_at_every_depth_and_nowhere_else():
    doc = {
        "type": "dict",
        "properties": {
            "type": {"type": "string", "enum": ["dict"]},
            "x": {"type": "float", "description": "d"},
            "pair": {"type": "tuple", "items": {"type": "dict", "properties": {"y": {"type": "any", "default": 1}}}},
            "either": {"anyOf": [{"type": "float"}, {"type": "null"}]},
        },
        "required": ["type"],
    }

    assert json_schema(doc) == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["dict"]},
            "x": {"type": "number", "description": "d"},
            "pair": {"type": "array", "items": {"type": "object", "properties": {"y": {"default": 1}}}},
            "either": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        },
        "required": ["type"],
    }
    assert doc["type"] == "dict"


def test_an_edit_shows_the_code_and_asks_for_all_of_it():
    turn = one(EDIT)

    assert turn.category == "edit"
    assert turn.messages[0]["content"] == (
        "Rename f.\n\nThe code:\n\n```python\ndef f():\n    pass\n```\n\n"
        "Answer with the whole code after the change, in one fenced block, and nothing else."
    )


def test_an_edits_context_is_shown_unless_it_is_a_harness_template_and_no_fence_ends_early():
    told = one({**EDIT, "context": "g = f\n```"}).messages[0]["content"]

    assert "Context:\n\n````python\ng = f\n```\n````\n\nThe code:\n\n````python\n" in told
    assert "{{" not in one({**EDIT, "context": "{{Code}}\n"}).messages[0]["content"]


@pytest.mark.parametrize(("category", "found"), [("humanities", "prose"), ("coding", "code"), ("code", "code")])
def test_a_prompt_is_its_first_text_since_the_answers_in_between_are_not_there(category, found):
    turn = one({**PROMPT, "category": category})

    assert (turn.messages, turn.category) == (({"role": "user", "content": "Why?"},), found)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**BFCL, "question": [[]]}, "question is not a list of turns that begins with a list of messages"),
        ({**BFCL, "function": []}, "function is missing or empty"),
        ({**BFCL, "function": [{"name": "f"}]}, "function[0].parameters is not an object"),
        ({**EDIT, "instruction": "(edit block for a.py)"}, "the instruction says nothing about the change"),
        ({**EDIT, "input": "\n"}, "input is missing or empty"),
        ({**EDIT, "context": 7}, "context is not a string"),
        ({**PROMPT, "turns": []}, "turns is not a list that begins with a text"),
    ],
)
def test_a_row_that_cant_be_used_says_why(row, reason):
    with pytest.raises(TraceError) as error:
        read_row(json.loads(json.dumps(row)), "file")

    assert str(error.value) == reason
