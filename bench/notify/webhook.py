"""Any receiver of JSON: the body is signed, so that it can tell us from anybody else.

The header `X-Bench-Signature-256` holds `sha256=` and the hexadecimal HMAC-SHA256 (RFC 2104) of the
body under the shared secret; `X-Bench-Delivery` is the same for a repeated try.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from bench.night import Night
from bench.notify._http import send_json
from bench.notify._settings import Settings
from bench.reports.night import night_document

SETTINGS = ("url_variable", "secret_variable")


class Webhook:
    """See bench.ports.Notifier."""

    one_by_one = False

    def __init__(self, name: str, url: str, secret: str | None) -> None:
        self.name = name
        self._url = url
        self._secret = secret

    def tell(self, night: Night) -> Mapping[str, str]:
        """Post the document `bench-night`."""
        body = json.dumps(night_document(night), ensure_ascii=False).encode()
        headers = {"X-Bench-Delivery": hashlib.sha256(body).hexdigest()[:32]}
        if self._secret is not None:
            headers["X-Bench-Signature-256"] = f"sha256={signature(body, self._secret)}"
        send_json(self._url, body, headers=headers)
        return {}


def signature(body: bytes, secret: str) -> str:
    """Hexadecimal HMAC-SHA256; a receiver compares it in constant time."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def make(name: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Webhook:
    """`url_variable` names the address, `secret_variable` (optional) the shared secret."""
    read = Settings(name, settings, environ)
    return Webhook(name, read.url("url_variable"), read.secret("secret_variable", required=False))
