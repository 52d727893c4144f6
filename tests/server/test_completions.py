"""`/v1/completions` over a real socket, mostly through OpenAI's own client."""

from __future__ import annotations

import pytest
from openai import OpenAI

from agentspec import SamplingParams

MODEL = "smollm2-135m"
PATH = "/v1/completions"


@pytest.fixture
def client(endpoint):
    with OpenAI(base_url=endpoint.url + "/v1", api_key="none", max_retries=0) as client:
        yield client


def test_a_completion_is_that_of_the_engine_and_has_16_tokens_unless_said(client, endpoint):
    completion = client.completions.create(model=MODEL, prompt="def add(a, b):")
    alone = endpoint.engine.generate("def add(a, b):", SamplingParams(max_tokens=16), speculate=False)
    (choice,) = completion.choices
    assert (choice.text, choice.finish_reason) == (alone.text, "length")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (alone.usage.prompt_tokens, 16)


def test_prompts_run_together_and_their_chunks_add_up_to_the_whole(client, endpoint):
    prompts = ["Once upon", "The sea is"]
    body = {"model": MODEL, "prompt": prompts, "n": 2, "seed": 3, "temperature": 0.8, "max_tokens": 5, "logprobs": 1}
    whole = client.completions.create(**body)
    assert [choice.index for choice in whole.choices] == [0, 1, 2, 3]
    chunks = list(client.completions.create(**body, stream=True, stream_options={"include_usage": True}))
    texts, tokens, places, finishes = [""] * 4, [[] for _ in range(4)], [[] for _ in range(4)], []
    for chunk in chunks[:-1]:
        (choice,) = chunk.choices
        texts[choice.index] += choice.text
        tokens[choice.index] += choice.logprobs.tokens
        places[choice.index] += choice.logprobs.text_offset
        finishes += [choice.index] if choice.finish_reason else []
    assert texts == [choice.text for choice in whole.choices]
    assert tokens == [choice.logprobs.tokens for choice in whole.choices]
    assert places == [choice.logprobs.text_offset for choice in whole.choices]
    assert sorted(finishes) == [0, 1, 2, 3]
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens) == ([], 20)
    params = SamplingParams(n=2, seed=3, temperature=0.8, max_tokens=5)
    alone = [endpoint.engine.generate(prompt, params, speculate=False) for prompt in prompts]
    assert texts == [each.text for first in alone for each in (first, *first.alternatives)]
    assert whole.usage.prompt_tokens == sum(first.usage.prompt_tokens for first in alone)


def test_log_probabilities_have_the_old_shape(scripted):
    scripted.engine.reply = lambda prompt: "hé!"  # a token each byte
    (choice,) = scripted.post(PATH, {"prompt": "assistant:", "logprobs": 0}).json()["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("hé!", "stop")
    logprobs = choice["logprobs"]
    assert logprobs["tokens"][:4] == ["h", "bytes:\\xc3", "bytes:\\xa9", "!"]
    assert logprobs["text_offset"] == [0, 1, 1, 2, 3], "the last is the end token's"
    assert [list(each) for each in logprobs["top_logprobs"]] == [[token] for token in logprobs["tokens"]]
    assert all(chance <= 0 for chance in logprobs["token_logprobs"])


@pytest.mark.parametrize("prompt", ["assistant:", list(b"assistant:")])
def test_a_prompt_is_repeated_as_text(scripted, prompt):
    scripted.engine.reply = lambda prompt: "Yes."
    body = {"prompt": prompt, "echo": True}
    assert scripted.post(PATH, body).json()["choices"][0]["text"] == "assistant:Yes."
    chunks = scripted.events(PATH, body)
    assert "".join(choice["text"] for chunk in chunks for choice in chunk["choices"]) == "assistant:Yes."


def test_an_answer_can_be_held_and_stopped(endpoint):
    body = {"prompt": "2+2=", "regex": "[0-9]{3}", "speculate": False}
    assert endpoint.post(PATH, body).json()["choices"][0]["text"].isdecimal()
    schema = {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"], "additionalProperties": False}
    assert endpoint.post(PATH, {"prompt": "", "json_schema": schema}).status_code == 400, "a prompt needs a token"
    held = endpoint.post(PATH, {"prompt": "{", "json_schema": schema}).json()["choices"][0]
    assert (held["text"], held["finish_reason"]) == ('{"a": "x"}', "stop")
    stopped = endpoint.post(PATH, {"prompt": "{", "json_schema": schema, "stop": ["x"]}).json()["choices"][0]
    assert (stopped["text"], stopped["finish_reason"]) == ('{"a": "', "stop")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"prompt": [[1], []]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": [10**30], "echo": True}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": ["a", ""]}, "prompt"),
        ({"prompt": "\ud800"}, "prompt"),
        ({"prompt": "a" * 5000}, "prompt"),
        ({"prompt": ["a"] * 17}, "prompt"),
        ({"prompt": ["a"] * 5, "n": 4}, "n"),
        ({"suffix": "b"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"logprobs": 6}, "logprobs"),
        ({"logprobs": 1, "echo": True}, "echo"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"json_schema": {"type": "strange"}}, "json_schema"),
        ({"regex": "a", "grammar": 'start: "a"'}, "grammar"),
    ],
)
def test_what_can_not_be_honoured_is_refused_by_name(scripted, body, param):
    answer = scripted.post(PATH, {"prompt": "a", **body})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
