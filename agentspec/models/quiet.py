"""transformers without its progress bars and remarks, where we show our own or check what they would say."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR, getLogger

from transformers.utils import logging


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers within the block, and leave its settings as they were."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub = getLogger("huggingface_hub")
    hub_level = hub.level
    hub.setLevel(ERROR)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        hub.setLevel(hub_level)
        if bars:
            logging.enable_progress_bar()
