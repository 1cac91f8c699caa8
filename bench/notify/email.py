"""Mail over SMTP, as plain text."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any

from bench.errors import ConfigError, NotifyError
from bench.night import Night
from bench.notify._settings import Settings
from bench.reports.night import headline, night_text

SETTINGS = ("host", "port", "sender", "recipients", "starttls", "user", "password_variable")

TIMEOUT_S = 20.0


class Email:
    """See bench.ports.Notifier."""

    one_by_one = False

    def __init__(
        self, name: str, host: str, port: int, sender: str, recipients: Sequence[str], *, starttls: bool,
        login: tuple[str, str] | None,
    ) -> None:  # fmt: skip
        self.name = name
        self._host, self._port = host, port
        self._sender, self._recipients = sender, recipients
        self._starttls = starttls
        self._login = login

    def tell(self, night: Night) -> Mapping[str, str]:
        """Send one message to all recipients."""
        message = EmailMessage()
        message["Subject"] = " ".join(f"bench: {headline(night)}".split())[:180]
        message["From"], message["To"] = self._sender, ", ".join(self._recipients)
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="bench.invalid")
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office answers
        message.set_content(night_text(night))
        try:
            with smtplib.SMTP(self._host, self._port, timeout=TIMEOUT_S) as server:
                if self._starttls:
                    server.starttls(context=ssl.create_default_context())
                if self._login:
                    server.login(*self._login)
                server.send_message(message)
        except smtplib.SMTPResponseException as error:
            # RFC 5321: 4xx is transient, 5xx permanent.
            raise NotifyError(f"the mail server answered {error.smtp_code}", again=error.smtp_code < 500) from None
        except smtplib.SMTPRecipientsRefused:
            raise NotifyError("the mail server refused every recipient", again=False) from None
        except (OSError, smtplib.SMTPException) as error:
            raise NotifyError(f"the mail server {self._host} cannot be used ({error})", again=True) from None
        return {}


def make(name: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Email:
    """`host`, `sender` and `recipients` are needed; `starttls` is on unless said otherwise."""
    read = Settings(name, settings, environ)
    password = read.secret("password_variable", required=False)
    if password is not None and "user" not in settings:
        raise ConfigError(f"channel {name!r} of [[tool.bench.notify]] has a password and no user.")
    return Email(
        name, read.text("host"), read.number("port", 587), read.text("sender"), read.texts("recipients"),
        starttls=read.flag("starttls", True), login=(read.text("user"), password) if password is not None else None,
    )  # fmt: skip
