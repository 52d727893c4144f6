"""What a caller may say about earlier and expected answers: it changes the number of forwards and never the text."""

import pytest
from engine_doubles import scripted_engine
from toy_vocabulary import TV

from agentspec.config import EngineConfig
from agentspec.errors import ConfigError
from agentspec.local.load import _answers

ANSWER = "The quick brown fox jumps over the lazy dog."


def test_a_prediction_saves_forwards_and_changes_nothing() -> None:
    with scripted_engine(ANSWER) as engine:
        alone = engine.generate([{"role": "user", "content": "Write."}], caller="alone")
        helped = engine.generate([{"role": "user", "content": "Write."}], caller="helped", prediction=ANSWER)
        wrong = engine.generate([{"role": "user", "content": "Write."}], caller="wrong", prediction="Something else")
    assert alone.text == helped.text == wrong.text == ANSWER
    assert helped.stats.forwards < 8 < alone.stats.forwards


def test_an_answer_comes_back_faster_to_the_caller_who_had_it_only() -> None:
    with scripted_engine(ANSWER) as engine:
        ann, bob, again = (
            engine.generate([{"role": "user", "content": "Write."}], caller=caller) for caller in ("ann", "bob", "ann")
        )
    assert again.stats.forwards < bob.stats.forwards == ann.stats.forwards


def test_what_is_no_prediction_and_no_history_is_refused() -> None:
    with scripted_engine(ANSWER) as engine, pytest.raises(ConfigError, match="prediction must be a text, not 3"):
        engine.generate("Write.", prediction=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="history must be the path of a file, not 3"):
        EngineConfig(history=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"which holds no NUL, not 'a\\x00b'"):
        EngineConfig(history="a\0b")
    with pytest.raises(ConfigError, match="history ~nouser_x/y has no home folder"):
        _answers(EngineConfig(history="~nouser_x/y"), TV)
