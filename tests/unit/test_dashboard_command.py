"""`bench dashboard`: what goes wrong before there is a page is one sentence and exit code 7."""

import importlib.util
import socket

import pytest

from bench.cli import run
from bench.commands import dashboard


def test_without_streamlit_it_says_what_to_install(monkeypatch, capsys):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "streamlit" else real(name))
    assert run(["dashboard", "--no-browser"]) == 7
    assert "pip install 'inference-bench[dashboard]'" in capsys.readouterr().err


def test_a_port_in_use_is_named(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["dashboard", "--no-browser", "--port", str(port)]) == 7
    assert f"port {port} on 127.0.0.1" in capsys.readouterr().err


def test_an_unknown_host_is_named(capsys):
    assert run(["dashboard", "--no-browser", "--host", "999.1.1.1"]) == 7
    assert "999.1.1.1" in capsys.readouterr().err


@pytest.mark.parametrize("browser", ["--browser", "--no-browser"])
def test_an_unreadable_setting_ends_it_before_a_server_starts(browser, monkeypatch, capsys, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.bench]\nunknown = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["dashboard", browser]) == 2
    assert "unknown" in capsys.readouterr().err


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("bench.lan", "bench.lan")])
def test_the_address_that_is_printed_can_be_opened(host, shown):
    assert dashboard._reachable(host) == shown
