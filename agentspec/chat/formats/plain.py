"""Tools told in the system turn, calls as Hermes writes them: for models whose template knows no tools."""

from __future__ import annotations

from dataclasses import replace

from agentspec.chat.formats.hermes import HERMES

PLAIN = replace(HERMES, name="plain", described=True)
