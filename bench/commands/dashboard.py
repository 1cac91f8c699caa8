"""`bench dashboard`: the pages in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.commands._shared import config_of, database_option

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path
    from typing import IO

FIRST_PORT = 8501
"""Streamlit's own; the next free one is taken when it is busy and none was asked for."""

START_S = 60.0
"""A start that takes longer has failed: imports take seconds even on a loaded machine."""


@click.command("dashboard")
@database_option
@click.option("--port", type=click.IntRange(1, 65535), help=f"Port (default: the first free one from {FIRST_PORT}).")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 lets others in.")
@click.option(
    "--browser/--no-browser", default=None, help="Open a browser (default: when this machine has a screen)."
)  # fmt: skip
@click.option("--allow-triage", is_flag=True,
              help="Let every reader decide on regressions, under any name; else only who signed in may.")  # fmt: skip
def command(database: str | None, port: int | None, host: str, browser: bool | None, allow_triage: bool) -> None:
    """Show stored runs, comparisons, tradeoffs, trends and regressions in a browser, until Ctrl-C."""
    import os
    import signal
    import subprocess
    import sys
    import tempfile

    config = config_of(database=database)
    page = _page()
    port = _free_port(host, port)
    arguments = [
        sys.executable, "-m", "streamlit", "run", str(page), f"--server.port={port}", f"--server.address={host}",
    ]  # fmt: skip
    if browser is not None:
        arguments.append(f"--server.headless={'false' if browser else 'true'}")
    elif not _has_screen():
        arguments.append("--server.headless=true")
    with tempfile.TemporaryFile() as said:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        child = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            # not arguments: an address may hold a password
            env={**os.environ, "BENCH_DATABASE": config.database, "BENCH_ALLOW_TRIAGE": "1" if allow_triage else ""},
        )  # fmt: skip
        try:
            _wait_until_up(child, said, host, port)
            click.echo(f"http://{_reachable(host)}:{port}")
            click.echo("bench: the dashboard is up; Ctrl-C ends it", err=True)
            child.wait()
        except KeyboardInterrupt:
            return
        finally:
            _end(child)
        raise _failed(said, f"the dashboard ended by itself (exit code {child.returncode})")


def _page() -> Path:
    """The script for Streamlit, found without importing it. Raises HostError."""
    from importlib.util import find_spec
    from pathlib import Path

    from bench.errors import HostError

    if any(find_spec(name) is None for name in ("streamlit", "plotly")):
        raise HostError("the dashboard needs Streamlit and Plotly: pip install 'inference-bench[dashboard]'.")
    found = find_spec("dashboard")
    if found is None or found.origin is None:
        raise HostError("this installation of bench lacks its dashboard folder; install inference-bench again.")
    return Path(found.origin).with_name("app.py")


def _free_port(host: str, wanted: int | None) -> int:
    from bench.errors import HostError

    candidates = [wanted] if wanted else range(FIRST_PORT, FIRST_PORT + 100)
    reason = ""
    for port in candidates:
        try:
            _try(host, port)
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return port
    which = f"port {wanted}" if wanted else f"every port from {FIRST_PORT} to {FIRST_PORT + 99}"
    raise HostError(f"{which} on {host} cannot be listened on: {reason}; choose another with --port or --host.")


def _try(host: str, port: int) -> None:
    import socket

    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def _has_screen() -> bool:
    import os
    import sys

    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _reachable(host: str) -> str:
    """An address that a browser can open: brackets round IPv6, loopback for any."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host


def _wait_until_up(child: subprocess.Popen[bytes], said: IO[bytes], host: str, port: int) -> None:
    """Return when the server answers. Raises HostError when it ends or takes too long."""
    import time
    import urllib.request

    deadline = time.monotonic() + START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise _failed(said, "the dashboard could not be started")
        try:
            with opener.open(f"http://{_reachable(host)}:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise _failed(said, f"the dashboard did not answer within {START_S:.0f} s")


def _failed(said: IO[bytes], what: str) -> Exception:
    """HostError with the last line that the server printed."""
    from bench.errors import HostError

    said.seek(0)
    lines = said.read().decode(errors="replace").split("\n")
    last = next((text.strip() for text in reversed(lines) if text.strip()), "it printed nothing")
    return HostError(f"{what}: {last}")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask, wait, insist: nothing is left running."""
    import subprocess

    if child.poll() is None:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
