"""Calls become conversations by what they begin with, in whatever order they come."""

from itertools import permutations

import pytest

from agentspec.replay.conversations import Call, Said, Setting
from agentspec.replay.grouping import Grouper

NO_TOOLS = Setting()


def call(text, *, setting=NO_TOOLS, line=1):
    """Of letters: small ones are the user's, capital ones the model's, the last one the answer."""
    *asked, answer = [{"role": "assistant" if letter.isupper() else "user", "content": letter} for letter in text]
    return Call(file="f", line=line, trace_id=text, messages=tuple(asked), answer=Said(answer), setting=setting)


def grouped(*calls, most_chars=10**6):
    grouper = Grouper(most_chars)
    found = [conversation for each in calls for conversation in grouper.add(each)] + [*grouper.finish()]
    return sorted(
        "".join(message["content"] + "*" * (index in each.targets) for index, message in enumerate(each.messages))
        for each in found
    )


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        (["aB", "aBcD", "aBcDeF"], ["aB*cD*eF*"]),
        (["aB", "aBcD", "aBeF"], None),  # a branch: the first answer belongs to either
        (["aB", "aB", "aBcD"], ["aB*", "aB*cD*"]),  # the same twice is not one
        (["aB", "aC"], ["aB*", "aC*"]),  # another answer to the same
        (["aB", "aBcDeF"], ["aB*cDeF*"]),  # one in between was not recorded
    ],
)
def test_the_order_does_not_matter(calls, found):
    ways = {tuple(grouped(*map(call, order))) for order in permutations(calls)}

    if found is not None:
        assert ways == {tuple(found)}
    for way in ways:
        assert sum(each.count("*") for each in way) == len(calls)  # every call is one turn


def test_a_conversation_whose_tools_change_goes_on_in_a_second_one_of_the_same_name():
    more = Setting(tools=({"type": "function", "function": {"name": "f"}},))
    grouper = Grouper(10**6)
    for each in (call("aB"), call("aBcD", setting=more), call("aBcDeF", setting=more)):
        assert [*grouper.add(each)] == []

    first, second = grouper.finish()
    assert (first.trace_id, first.targets, len(first.messages)) == ("aB", (1,), 2)
    assert (second.trace_id, second.targets, len(second.messages)) == ("aB", (3, 5), 6)
    assert (first.setting, second.setting) == (NO_TOOLS, more)


def test_a_message_that_the_client_wrote_again_is_the_same_and_the_models_own_one_is_kept():
    def calling(arguments, content):
        function = {"name": "f", "arguments": arguments}
        return {"role": "assistant", "content": content, "tool_calls": [{"id": "1", "function": function}]}

    ask = {"role": "user", "content": "a"}
    again = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    first = Call(file="f", line=1, trace_id="t", messages=(ask,), answer=Said(calling('{"x":  1}', None)))
    rest = (again, calling('{"x": 1}', ""), {"role": "tool", "content": "1"})
    second = Call(file="f", line=2, trace_id="t", messages=rest, answer=Said({"role": "assistant", "content": "b"}))

    for order in ((first, second), (second, first)):
        grouper = Grouper(10**6)
        for each in order:
            assert [*grouper.add(each)] == []
        (found,) = grouper.finish()
        assert found.targets == (1, 3)
        assert found.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"x":  1}'


def test_beyond_a_size_the_one_that_went_on_longest_ago_is_taken_as_ended():
    a, b = call("aB"), call("cD")
    size = 60  # each message counts some 25 characters

    assert grouped(a, b, call("cDeF"), call("aBgH"), most_chars=size) == ["aB*", "aBgH*", "cD*eF*"]
    assert grouped(a, b, call("cDeF"), call("aBgH")) == ["aB*gH*", "cD*eF*"]
