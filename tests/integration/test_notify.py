"""Channels against receivers on this machine: signed, escaped, tried again, nothing twice."""

import json
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aiosmtpd.controller import Controller

from bench.errors import ConfigError
from bench.history import Action, Direction
from bench.night import night, story
from bench.notify import kinds, notifiers, read_channels
from bench.notify._deliver import deliver
from bench.notify.webhook import signature
from bench.testing import MemoryStore, make_change, make_event, make_regression

NOW = datetime(2027, 1, 2, 6, tzinfo=UTC)


class Receiver(ThreadingHTTPServer):
    """Answers with the statuses given, then 200; keeps what it got."""

    daemon_threads = True

    def __init__(self, *statuses, headers=()):
        self.got = []
        self.statuses = list(statuses)
        self.headers = headers
        super().__init__(("127.0.0.1", 0), Answer)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.command, self.path, dict(self.headers), body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 201)
        for name, value in self.server.headers:
            self.send_header(name, value)
        self.end_headers()
        number = len([g for g in self.server.got if g[1].endswith("/issues")])
        link = f"{self.server.url}/own/repo/issues/{number}"
        self.wfile.write(json.dumps({"html_url": link}).encode())

    def do_PATCH(self):
        self.do_POST()

    def log_message(self, *arguments):
        pass


@contextmanager
def receiver(*statuses, headers=()):
    server = Receiver(*statuses, headers=headers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def history():
    return MemoryStore().history


def regression(history, key="a" * 32, direction=Direction.WORSE):
    found = make_regression(key, direction=direction)
    history.open_regression(found, make_event(key, 1, Action.OPENED))
    return key


def tonight(history, *, since=NOW - timedelta(days=30)):
    stories = [
        story(r, [e for e in history.events(r.key) if e.at > since], [make_change(1.2)]) for r in history.regressions()
    ]
    return night(stories, [], since=since, until=NOW)


def channel(kind, url, **settings):
    table = {"kind": kind, "url_variable": "URL", **settings}
    return notifiers(read_channels([table], "here"), {"URL": url, "SECRET": "s3cret", "TOKEN": "t0ken"})


def test_a_webhook_gets_the_night_signed(history):
    regression(history)
    with receiver() as server:
        (done,) = deliver(tonight(history), channel("webhook", server.url, secret_variable="SECRET"), history)
        ((_, _, headers, body),) = server.got
    assert (done.stories, done.error) == (1, "")
    assert headers["X-Bench-Signature-256"] == f"sha256={signature(body, 's3cret')}"
    assert json.loads(body)["worse"][0]["regression"] == "a" * 32


def test_nothing_is_told_twice_though_the_period_is_the_same(history):
    regression(history)
    with receiver() as server:
        channels = channel("webhook", server.url)
        for _ in range(3):
            deliver(tonight(history), channels, history)
        assert len(server.got) == 1
        history.append(make_event("a" * 32, 2, Action.GREW))
        deliver(tonight(history), channels, history)
        assert len(server.got) == 2


def test_a_busy_receiver_is_tried_again_after_the_pause_it_asks_for(history):
    regression(history)
    pauses = []
    with receiver(503, 429, headers=[("Retry-After", "7")]) as server:
        (done,) = deliver(tonight(history), channel("webhook", server.url), history, sleep=pauses.append)
        deliveries = {headers["X-Bench-Delivery"] for _, _, headers, _ in server.got}
    assert (done.error, pauses, len(deliveries)) == ("", [7.0, 7.0], 1)


def test_what_could_not_be_told_is_told_by_the_next_call(history):
    regression(history)
    with receiver(403) as server:
        channels = channel("webhook", server.url)
        (done,) = deliver(tonight(history), channels, history)
        assert done.error == "the receiver answered 403"
        (done,) = deliver(tonight(history), channels, history)
        assert (done.error, done.stories, len(server.got)) == ("", 1, 2)


def test_an_address_that_nobody_answers_is_an_error_that_does_not_show_the_address(history):
    regression(history)
    with receiver() as server:
        url = f"{server.url}/secret-path"
    (done,) = deliver(tonight(history), channel("webhook", url), history, sleep=lambda _: None)
    assert "cannot be reached" in done.error
    assert "secret-path" not in done.error


def test_a_redirect_is_not_followed(history):
    regression(history)
    with receiver() as other, receiver(307, headers=[("Location", other.url)]) as server:
        (done,) = deliver(tonight(history), channel("webhook", server.url), history)
        assert other.got == []
    assert "307" in done.error


def test_a_silent_night_sends_nothing_and_claims_nothing(history):
    regression(history, direction=Direction.BETTER)
    with receiver() as server:
        channels = channel("webhook", server.url)
        deliver(tonight(history), channels, history)
        assert server.got == []
        regression(history, "b" * 32)
        deliver(tonight(history), channels, history)
        document = json.loads(server.got[0][3])
    assert (len(document["worse"]), len(document["better"])) == (1, 1)


def test_slack_gets_text_in_which_no_name_is_a_mention(history):
    found = make_regression("c" * 32, title="<!channel> & ``` out")
    history.open_regression(found, make_event("c" * 32, 1, Action.OPENED))
    with receiver() as server:
        deliver(tonight(history), channel("slack", server.url), history)
        text = json.loads(server.got[0][3])["text"]
    assert "<!channel>" not in text
    assert "&lt;!channel&gt; &amp; ''' out" in text


def test_one_issue_a_cause_is_opened_once_then_kept_up_to_date_and_closed(history):
    key = regression(history)
    regression(history, "b" * 32)
    with receiver() as server:
        table = {"kind": "github", "repository": "own/repo", "token_variable": "TOKEN", "api": server.url}
        channels = notifiers(read_channels([table], "here"), {"TOKEN": "t0ken"})
        deliver(tonight(history), channels, history)
        assert [got[:2] for got in server.got] == [("POST", "/repos/own/repo/issues")] * 2
        assert server.got[0][2]["Authorization"] == "Bearer t0ken"
        (link,) = history.regression(key).links
        history.append(make_event(key, history.regression(key).events + 1, Action.FIXED))
        deliver(tonight(history), channels, history)
        methods = [got[0] for got in server.got[2:]]
        issue = link.rpartition("/")[2]
        assert methods == ["PATCH", "POST"]
        assert server.got[2][1] == f"/repos/own/repo/issues/{issue}"
        assert json.loads(server.got[2][3])["state"] == "closed"
        assert server.got[3][1] == f"/repos/own/repo/issues/{issue}/comments"


class Box:
    def __init__(self, status="250 OK"):
        self.messages = []
        self.status = status

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - the library's name
        self.messages.append(envelope)
        return self.status


@contextmanager
def mail_server(box):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Controller(box, hostname="127.0.0.1", port=port)
    server.start()
    try:
        yield port
    finally:
        server.stop()


def mail(port):
    table = {
        "kind": "email", "host": "127.0.0.1", "port": port, "sender": "bench@example.org",
        "recipients": ["ada@example.org", "bob@example.org"], "starttls": False,
    }  # fmt: skip
    return notifiers(read_channels([table], "here"), {})


@pytest.mark.filterwarnings("ignore")
def test_mail_reaches_every_recipient_with_the_headline_as_its_subject(history):
    regression(history)
    box = Box()
    with mail_server(box) as port:
        (done,) = deliver(tonight(history), mail(port), history)
    (message,) = box.messages
    assert done.error == ""
    assert message.rcpt_tos == ["ada@example.org", "bob@example.org"]
    assert b"Subject: bench: 1 cause of regressions" in message.content


@pytest.mark.filterwarnings("ignore")
def test_a_mail_server_that_refuses_is_an_error_and_not_tried_again_in_vain(history):
    regression(history)
    box = Box("554 no")
    with mail_server(box) as port:
        (done,) = deliver(tonight(history), mail(port), history)
    assert done.error == "the mail server answered 554"
    assert len(box.messages) == 1


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"kind": "pigeon"}, "pigeon"),
        ({"kind": "slack", "url": "x"}, "'url'"),
        ({"kind": "slack", "name": 3}, "name must be a text"),
    ],
)
def test_a_wrong_channel_is_refused_when_the_configuration_is_read(table, says):
    with pytest.raises(ConfigError, match=says):
        read_channels([table], "[tool.bench]")


@pytest.mark.parametrize(
    ("table", "environ", "says"),
    [
        ({"kind": "slack", "url_variable": "URL"}, {}, "URL is not set"),
        ({"kind": "slack", "url_variable": "URL"}, {"URL": "ftp://x"}, "no http"),
        ({"kind": "github", "repository": "a b", "token_variable": "T"}, {"T": "t"}, "owner/name"),
        ({"kind": "email", "host": "h", "sender": "s", "recipients": []}, {}, "list of texts"),
        ({"kind": "email", "host": "h", "sender": "s", "recipients": ["r"], "port": True}, {}, "over 0"),
    ],
)
def test_a_channel_that_lacks_something_says_which(table, environ, says):
    with pytest.raises(ConfigError, match=says):
        notifiers(read_channels([table], "[tool.bench]"), environ)


def test_every_kind_of_channel_has_its_settings():
    assert set(kinds()) == {"email", "github", "slack", "stdout", "webhook"}
