"""`/metrics`, as Prometheus reads it."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

API = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}
LONG = {"model": "smollm2-135m", **HELLO, "max_tokens": 2000, "min_tokens": 2000, "stream": True}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]},
    },
}
CALL = {"messages": [{"role": "user", "content": "Weather?"}], "tools": [WEATHER], "tool_choice": "required"}


def samples(endpoint: Any, name: str) -> dict[tuple[str, ...], float]:
    """The samples of this name, by their labels' values in alphabetical order of the labels."""
    text = endpoint.get("/metrics").text
    return {
        tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_an_answer_is_counted_in_tokens_forwards_and_drafts_by_source_and_segment(serve):
    endpoint = serve()
    usage = endpoint.post(API, CALL).json()["usage"]

    assert samples(endpoint, "agentspec_requests_total") == {(API, "answered"): 1}
    assert samples(endpoint, "agentspec_completion_tokens_total") == {(API,): usage["completion_tokens"]}
    assert samples(endpoint, "agentspec_prompt_tokens_total") == {(API,): usage["prompt_tokens"]}
    accepted = samples(endpoint, "agentspec_accepted_tokens_total")
    assert accepted["call_frame", "grammar"] > 4
    drafted = samples(endpoint, "agentspec_drafted_tokens_total")
    assert all(drafted[where] >= count for where, count in accepted.items())
    forwards = samples(endpoint, "agentspec_forwards_total")[API,]
    assert forwards == usage["completion_tokens"] - sum(accepted.values())
    for name in ("time_to_first_token", "time_per_token", "request_duration"):
        assert samples(endpoint, f"agentspec_{name}_seconds_count") == {(API,): 1}
    assert samples(endpoint, "agentspec_answers_running") == {(): 0}
    assert samples(endpoint, "agentspec_info") == {("smollm2-135m", endpoint.app.version): 1}


def test_a_prompt_that_was_read_before_is_a_hit_of_the_prefix_cache(serve):
    endpoint = serve()
    for _ in range(2):
        cached = endpoint.post(API, HELLO).json()["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert cached > 4
    assert samples(endpoint, "agentspec_prompt_cached_tokens_total")[API,] >= cached


def test_a_full_queue_and_other_errors_are_counted_and_labels_stay_few(serve):
    endpoint = serve(max_running=1, max_queue=0)
    with httpx.stream("POST", endpoint.url + API, json=LONG) as answer:
        lines = answer.iter_lines()  # kept, for without it httpx goes away
        next(lines)
        assert endpoint.post(API, HELLO).status_code == 429
    assert endpoint.post(API, {**HELLO, "n": 2}).status_code == 400  # no waiting would help
    assert endpoint.get("/nothing/here").status_code == 404

    assert samples(endpoint, "agentspec_queue_refusals_total") == {(API,): 1}
    assert samples(endpoint, "agentspec_error_responses_total") == {
        (API, "429"): 1,
        (API, "400"): 1,
        ("other", "404"): 1,
    }


def test_a_client_that_goes_away_is_a_request_that_was_cancelled(serve):
    endpoint = serve()
    with httpx.stream("POST", endpoint.url + API, json=LONG) as answer:
        next(answer.iter_lines())

    until = monotonic() + 20
    while not (found := samples(endpoint, "agentspec_requests_total")) and monotonic() < until:
        sleep(0.05)
    assert found == {(API, "cancelled"): 1}


def test_where_there_is_a_key_metrics_need_it(serve):
    endpoint = serve(api_key="k")

    assert endpoint.get("/metrics").status_code == 401
    assert endpoint.get("/metrics", headers={"Authorization": "Bearer k"}).status_code == 200
