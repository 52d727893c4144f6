"""What whoever starts the endpoint decides."""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass
from pathlib import Path

from agentspec.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How the endpoint listens, and what it refuses.

    Attributes:
        model_names: What clients may call the model; the first one is told in answers.
        host: Address to listen at. Any but this machine's own needs an API key.
        port: 0: any that is free.
        api_key: That clients must show, as `Authorization: Bearer KEY` or `x-api-key: KEY`; None: none.
        max_queue: How many answers may wait beside those that run; one more is refused with 429.
        cors: Origins whose pages may call the endpoint; "*": all.
        request_timeout_s: Seconds for a whole request; then it is cancelled. So it is where its client takes nothing
            of the answer for that long.
        grace_s: Seconds that running requests have to finish once the server is told to stop.
        max_body_bytes: Of a request.
        max_messages: Of a conversation.
        max_tools: Of a request.
        max_schema_bytes: Of a response format, a regex or a grammar, or all of a request's tools together, as JSON.
        max_answers: The largest `n`.
        max_responses: How many finished `/v1/responses` are remembered for `previous_response_id`.
        record: A file that each request is appended to, for `agentspec replay`. None: nothing is recorded.
        record_redact: Record token ids and digests instead of texts.
    """

    model_names: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = None
    max_queue: int = 64
    cors: tuple[str, ...] = ()
    request_timeout_s: float = 600.0
    grace_s: float = 10.0
    max_body_bytes: int = 8 * 2**20
    max_messages: int = 4096
    max_tools: int = 256
    max_schema_bytes: int = 2**20
    max_answers: int = 16
    max_responses: int = 256
    record: Path | None = None
    record_redact: bool = False

    def __post_init__(self) -> None:
        if not self.model_names:
            raise ConfigError("model_names must hold at least one name: clients have to ask for some model")
        if self.api_key is not None and not self.api_key.strip():
            raise ConfigError("the API key is empty: give one, or none at all")
        if self.api_key is not None and not re.fullmatch("[!-~]+", self.api_key):
            raise ConfigError(
                "the API key must be visible ASCII characters without white space: no header holds others"
            )
        if self.api_key is None and not is_loopback(self.host):
            raise ConfigError(
                f"host {self.host} can be reached from other machines: set an API key (--api-key), or use 127.0.0.1"
            )
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"port must be in 0..65535, not {self.port}")
        for name in ("max_queue", "max_responses"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be at least 0, not {getattr(self, name)}")
        for name in ("request_timeout_s", "grace_s", "max_body_bytes", "max_messages", "max_tools", "max_answers"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0, not {getattr(self, name)}")
        if math.isinf(self.grace_s):
            raise ConfigError("grace_s must be a number of seconds, not inf")
        if self.record_redact and self.record is None:
            raise ConfigError("record_redact says how to record, and record names no file: give --record FILE")


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
