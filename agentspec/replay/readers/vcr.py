"""VCR cassettes: the HTTP traffic of a test run.

Source: VCR.py's documentation and the cassettes of its users. YAML, or JSON, of `interactions`, each with a `request`
(`method`, `uri`, `body`) and a `response` (`status`, `body.string`); some projects write `parsed_body` instead of a
body. A body is a text, or bytes, compressed or not, of JSON or of server-sent events. What was sent to something else
than a model's API is skipped with its reason.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import PurePath
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.readers.base import Format, Item, Record, object_at, objects, parsed
from agentspec.replay.readers.exchange import Exchanges, is_request

_INTERACTIONS = re.compile(r"^interactions:", re.MULTILINE)
_MOST_BYTES = 64 * 2**20  # of a body that was compressed


class Reader:
    """Reads one cassette."""

    def feed(self, record: Record) -> Iterable[Item]:
        """The calls of a cassette, which is one record."""
        cassette = _yaml(record.value) if isinstance(record.value, str) else record.value
        if not isinstance(cassette, dict):
            raise TraceError("not a cassette")
        return _calls(record, objects(cassette, "interactions"))

    def finish(self) -> Iterable[Item]:
        """Nothing."""
        return ()


def _calls(record: Record, interactions: list[dict[str, Any]]) -> Iterator[Item]:
    exchanges = Exchanges()
    name = PurePath(record.file).stem
    for number, interaction in enumerate(interactions, 1):
        here = Record(interaction, record.file, number)
        try:
            request, answer = _bodies(interaction)
            yield from exchanges.calls(here, request, answer, f"{name} {number}")
        except TraceError as error:
            yield here.skipped(str(error))


def _bodies(interaction: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    request, response = object_at(interaction, "request"), object_at(interaction, "response")
    asked = _body(request)
    if not isinstance(asked, dict) or not is_request(asked):
        raise TraceError("the request asks no model")
    status = response.get("status")
    code = status.get("code") if isinstance(status, dict) else status or response.get("status_code")
    if isinstance(code, int) and code >= 400:
        raise TraceError(f"the answer has status {code}")
    return asked, _body(response)


def _body(half: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if half.get("parsed_body") is not None:
        return half["parsed_body"]
    body = half.get("body", half.get("content"))
    if isinstance(body, dict) and body.keys() <= {"string", "encoding"}:
        body = body.get("string")
    if isinstance(body, bytes):
        body = _decoded(body)
    return parsed(body)


def _decoded(body: bytes) -> str:
    try:
        if body.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=BytesIO(body)) as unpacked:
                body = unpacked.read(_MOST_BYTES)
        return body.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        raise TraceError("a body can't be decoded") from None


def _yaml(text: str) -> Any:  # noqa: ANN401
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise TraceError(f"not YAML{f': line {mark.line + 1}' if mark else ''}") from None


def _recognises(value: object) -> bool:
    if isinstance(value, str):
        return bool(_INTERACTIONS.search(value[:65536]))
    return isinstance(value, dict) and isinstance(value.get("interactions"), list)


FORMAT = Format(
    "VCR cassette",
    "HTTP traffic of tests, in YAML or JSON",
    "interactions",
    _recognises,
    Reader,
)
