"""`/v1/chat/completions` over a real socket."""

from __future__ import annotations

HELLO = [{"role": "user", "content": "Say hello."}]


def test_a_completion_is_that_of_the_engine(endpoint):
    from agentspec import SamplingParams

    answer = endpoint.post("/v1/chat/completions", {"messages": HELLO, "max_tokens": 8}).json()
    alone = endpoint.engine.generate(HELLO, SamplingParams(max_tokens=8), speculate=False)
    assert answer["choices"][0]["message"]["content"] == alone.text
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 8
