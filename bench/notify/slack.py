"""A Slack-compatible incoming webhook (Slack, Mattermost, Rocket.Chat, Discord's /slack)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.night import Night
from bench.notify._http import send_json
from bench.notify._settings import Settings
from bench.reports.night import night_text

SETTINGS = ("url_variable",)

LONGEST = 3_800
"""Characters; Slack cuts a message's text at about 4,000."""


class Slack:
    """See bench.ports.Notifier."""

    one_by_one = False

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self._url = url

    def tell(self, night: Night) -> Mapping[str, str]:
        """Post one message: a title line, the rest as preformatted text."""
        first, _, rest = night_text(night).rstrip("\n").partition("\n")
        text = f"*bench:* {escape(first)}"
        if rest:
            body = escape(rest.strip("\n").replace("```", "'''"))
            body = body if len(body) <= LONGEST else body[:LONGEST].rsplit("\n", 1)[0] + "\n…"
            text += f"\n```\n{body}\n```"
        send_json(self._url, {"text": text}, headers={})
        return {}


def escape(text: str) -> str:
    """The three characters that Slack's documentation asks to be replaced: no name becomes a mention or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def make(name: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Slack:
    """`url_variable` names the address of the webhook."""
    return Slack(name, Settings(name, settings, environ).url("url_variable"))
