"""A dashboard on a filled database and a real Chromium in front of it."""

import os
import re
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.history import Action
from bench.model import Accelerator, Conditions, Failure, FailureKind, Machine, Revision, Run
from bench.series import find_changes, fold
from bench.testing import make_event, make_regression, make_run

SCREENSHOTS = Path(__file__).parent / "screenshots"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
EVIL = "<script>alert(1)</script>"

WRONG = Failure(
    kind=FailureKind.WRONG, phase="check", message="the largest logit differs in 37 of 64 images (3 are allowed)",
    detail="largest difference 4.81 at image 12\nreference: tabby cat\nanswer: window screen",
)  # fmt: skip
SKIPPED = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="openvino is not installed; pip install openvino")
HOSTILE = Failure(
    kind=FailureKind.RAISED, phase="first_call", message=f"RuntimeError: {EVIL} [x](javascript:alert(1))", detail=EVIL
)  # fmt: skip

GPU = Machine(
    architecture="x86_64", cpu="AMD EPYC 9654 96-Core Processor", physical_cores=96, logical_cores=192,
    memory_gib=755, accelerators=(Accelerator(kind="gpu", model="NVIDIA H200"),),
)  # fmt: skip


def history() -> list[Run]:
    """Runs as a week brings them, newest first: busy and quiet, two machines, failures, hostile names."""
    now = datetime.now(UTC)
    found = []
    for place, minutes in enumerate((16, 190, 1440, 2900, 4400)):
        start = now - timedelta(minutes=minutes)
        speedups = (1.0, 2.31, 1.62, 3.4, 0.71)
        one = make_run(seed=place, suite="quantization", speedups=speedups, noise=0.03, failure=WRONG)
        two = make_run(seed=place + 50, suite="attention", speedups=(1.0, 1.004, 1.4), failure=SKIPPED)
        three = make_run(seed=place + 90, suite=EVIL, failure=HOSTILE if place == 4 else None)
        found.append(
            replace(
                one, started_at=start, finished_at=start + timedelta(seconds=201 - place),
                experiments=one.experiments + two.experiments + three.experiments,
                machine=GPU if place == 2 else one.machine,
                revision=Revision(commit="3a65fa9c1d2e44b7a8e0", branch="main", dirty=place == 3),
                conditions=Conditions(load_before=5.2, load_after=8.1, foreign_cpu=0.34, cpu_pressure=0.41)
                if place == 0
                else Conditions(load_before=0.1, load_after=1.2, foreign_cpu=0.01, cpu_pressure=0.02),
            )
        )  # fmt: skip
    return found


@pytest.fixture(scope="session")
def runs():
    """What the database holds, newest first."""
    return history()


@pytest.fixture(scope="session")
def database(tmp_path_factory, runs):
    """A SQLite file that holds the runs."""
    from db.store import open_store

    file = tmp_path_factory.mktemp("browser") / "bench.db"
    with closing(open_store(f"sqlite:///{file}")) as store:
        for run in runs:
            store.add(run)
    return file


@pytest.fixture(scope="session")
def trap():
    """A proxy for the server that answers nobody: whatever connects wanted to leave the machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        listener.setblocking(False)
        yield listener


def start(database, trap=None, *flags):
    """`bench dashboard` on a free port; (process, address)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    if trap is not None:
        proxy = f"http://127.0.0.1:{trap.getsockname()[1]}"
        environment |= dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy)
    process = subprocess.Popen(
        [sys.executable, "-c", "from bench.cli import main; main()", "dashboard", "--no-browser",
         "--port", str(port), "--database", str(database), *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True,
    )  # fmt: skip
    address = process.stdout.readline().strip()
    assert re.fullmatch(rf"http://127\.0\.0\.1:{port}", address), (address, process.stderr.read())
    return process, address


@pytest.fixture(scope="session")
def dashboard(database, trap):
    """Address of a running dashboard."""
    process, address = start(database, trap)
    yield address
    process.terminate()
    process.communicate(timeout=20)


@pytest.fixture(scope="session")
def serve():
    """Start a dashboard on a database, with flags if need be; its address. All are ended with the session."""
    made = []

    def make(database, *flags):
        made.append(start(database, None, *flags))
        return made[-1][1]

    yield make
    for process, _ in made:
        process.terminate()
    for process, _ in made:
        process.communicate(timeout=20)


@pytest.fixture(scope="session")
def long_history(tmp_path_factory):
    """(path, series, points, change) of a database with 30 commits of which the last 15 are 1.3 times as slow."""
    from bench.commands._shared import estimates
    from db.store import open_store

    file = tmp_path_factory.mktemp("history") / "bench.db"
    first = datetime(2027, 1, 1, tzinfo=UTC)
    with closing(open_store(f"sqlite:///{file}", summarise=estimates)) as store:
        for k in range(30):
            run = make_run(
                seed=k, speedups=(1.0, 2.0 / (1.3 if k >= 15 else 1.0)), started_at=first + timedelta(days=k)
            )
            store.add(replace(run, revision=Revision(commit=f"{k:040x}", branch="main")))
        history = store.history
        series = next(s for s in history.series() if s.metric.name == "time" and "e1" in s.variant)
        points = fold(history.points([series.fingerprint])[series.fingerprint])
        (change,) = (replace(c, regression="ab12cd34" * 4) for c in find_changes(series, points, at=first))
        history.record([change], seen={})
        found = make_regression("ab12cd34" * 4, title=f"{EVIL} latency 1.3×", changes=[change])
        event = replace(make_event(found.key, 1, Action.OPENED, EVIL), changes=(change.key,))
        history.open_regression(replace(found, events=1), event)
    return file, series, points, change


@pytest.fixture(scope="session")
def history_dashboard(long_history):
    """Address of a dashboard that shows it."""
    process, address = start(long_history[0])
    yield address
    process.terminate()
    process.communicate(timeout=20)


@pytest.fixture(scope="session")
def chromium():
    """A browser that talks to nobody by itself."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = os.environ.get("BENCH_TEST_CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, headless=True)
        yield browser
        browser.close()


class Visitor:
    """One reader: a page, what it asked for, and what it said."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.requests, self.dialogs = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))

    def open(self, path, wait_for=".b-state"):
        """Go there and wait until the script and the drawing have ended."""
        self.page.goto(self.address + path)
        self.page.wait_for_selector(wait_for, timeout=60_000)
        self.settle()

    def settle(self):
        """Wait until no script runs."""
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000)

    def points(self):
        """(label, x, y) of every drawn point. `_fullData`, since Plotly sends typed arrays."""
        self.page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", timeout=60_000)
        return self.page.evaluate(
            """() => document.querySelector('.js-plotly-plot')._fullData.flatMap(
                 t => Array.from(t.x, (x, i) => [t.customdata[i][0], x, t.y[i]]))"""
        )

    def shoot(self, name):
        """A screenshot of the whole page."""
        SCREENSHOTS.mkdir(exist_ok=True)
        size = self.page.viewport_size
        height = self.page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight")
        self.page.set_viewport_size({"width": size["width"], "height": int(height) + 70})
        self.page.wait_for_timeout(800)  # the figure grows into its place
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")
        self.page.set_viewport_size(size)

    def strangers(self):
        """Requests to anywhere but the dashboard."""
        own = (self.address, self.address.replace("http", "ws"), "data:", "blob:", "about:")
        return [url for url in self.requests if not url.startswith(own)]


@pytest.fixture
def visit(chromium, dashboard):
    """Make a reader with a theme and a size."""
    contexts = []

    def make(theme="light", width=1280, height=900, zone="Europe/Berlin", address=dashboard):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, timezone_id=zone
        )  # fmt: skip
        contexts.append(context)
        return Visitor(context.new_page(), address)

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def start_dashboard(database):
    """Start one of your own; whatever is left is ended."""
    made = []

    def make():
        made.append(start(database))
        return made[-1]

    yield make
    for process, _ in made:
        if process.poll() is None:
            process.kill()
        process.communicate()
