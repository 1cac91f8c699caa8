"""One GitHub issue a cause: opened once, its text kept up to date, a comment for what happens, closed when fixed.

API: REST, version 2022-11-28, issues and comments. `api` may be the address of an Enterprise server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bench.errors import ConfigError
from bench.history import Action
from bench.night import Night, Story
from bench.notify._http import send_json
from bench.notify._settings import Settings
from bench.reports.night import story_markdown

SETTINGS = ("repository", "token_variable", "api", "labels")

API = "https://api.github.com"


class GitHub:
    """See bench.ports.Notifier."""

    one_by_one = True

    def __init__(self, name: str, repository: str, token: str, api: str, labels: tuple[str, ...]) -> None:
        self.name = name
        self._issues = f"{api.rstrip('/')}/repos/{repository}/issues"
        self._headers = {
            "Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }  # fmt: skip
        self._own = re.compile(rf"https?://[^ ]+/{re.escape(repository)}/issues/(\d+)$")
        self._labels = labels

    def tell(self, night: Night) -> Mapping[str, str]:
        """Open or update the issue of the one story."""
        (story,) = [*night.worse, *night.suspicious, *night.fixed, *night.better]
        number = self._number(story)
        title = " ".join(story.regression.title.split())[:200]
        body = "\n".join([*story_markdown(story), "", f"`bench regressions show {story.regression.key[:8]}`"])
        if number is None:
            answer = send_json(
                self._issues, {"title": title, "body": body, "labels": list(self._labels)}, headers=self._headers
            )
            return {story.regression.key: str(answer["html_url"])} if isinstance(answer, dict) else {}
        issue = f"{self._issues}/{number}"
        fixed = story.happened[-1] is Action.FIXED
        send_json(issue, self._update(title, body, fixed), headers=self._headers, method="PATCH")
        words = ", ".join(action.value for action in story.happened)
        send_json(f"{issue}/comments", {"body": f"bench: {words}."}, headers=self._headers)
        return {}

    @staticmethod
    def _update(title: str, body: str, fixed: bool) -> dict[str, Any]:
        state = {"state": "closed", "state_reason": "completed"} if fixed else {"state": "open"}
        return {"title": title, "body": body, **state}

    def _number(self, story: Story) -> int | None:
        found = [m for link in story.regression.links if (m := self._own.match(link))]
        return int(found[0][1]) if found else None


def make(name: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> GitHub:
    """`repository` (owner/name) and `token_variable` are needed."""
    read = Settings(name, settings, environ)
    repository = read.text("repository")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ConfigError(f"channel {name!r} of [[tool.bench.notify]]: repository must be owner/name.")
    token = read.secret("token_variable")
    assert token is not None
    labels = read.texts("labels") if "labels" in settings else ("performance",)
    return GitHub(name, repository, token, read.text("api", API), labels)
