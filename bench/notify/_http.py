"""Posting JSON, with an error that says whether another try makes sense. Standard library only."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from bench.errors import NotifyError

TIMEOUT_S = 10.0

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed (RFC 9110, RFC 6585)."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirected post would arrive as a GET, or carry a secret to another host."""

    def redirect_request(self, *arguments: Any, **keywords: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


def send_json(url: str, body: Any, *, headers: Mapping[str, str], method: str = "POST") -> Any:
    """Send `body` and return the answer, decoded where it is JSON. Raises NotifyError without the address,
    which may itself be a secret.
    """
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        url, data=data, method=method,
        headers={"Content-Type": "application/json", "User-Agent": "inference-bench", **headers},
    )  # fmt: skip
    try:
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        wait = error.headers.get("Retry-After", "")
        error.close()
        raise NotifyError(
            f"the receiver answered {error.code}", again=error.code in AGAIN,
            after_s=float(wait) if wait.isdigit() else None,
        ) from None  # fmt: skip
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NotifyError(f"the receiver cannot be reached ({reason})", again=True) from None
    try:
        return json.loads(text)
    except ValueError:
        return None
