"""Workers that are forks of a parent which imported the suite: one import a launch, each death where it belongs."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from bench.experiment import run_experiments
from bench.measure import forking, parents
from bench.measure.parents import Parents
from bench.measure.session import ArmFailed, Session
from bench.model import Arm, Benchmark, Experiment, FailureKind, Policy, Target
from bench.modules import modules
from bench.plan import plan
from bench.sources.native import NativeSource
from bench.testing import SilentProgress

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a fork is safe")

FAKE = "bench.testing:FakeDevice"

SUITE = """
import os, random, signal, sys, time
from bench.api import LOWER, Metric, Skip, Work, benchmark

with open(os.environ["TEST_MARKER"], "a") as file:
    file.write(f"{os.getpid()}\\n")
BALLAST = bytearray(b"x" * 64_000_000)
del BALLAST
CHANCE = random.random()
HASH = hash("text")

EXTRA

@benchmark(axes={"how": ("ok", "raises", "hangs", "ends", "killed", "forks", "skips", "ends_parent")}, timeout=3.0)
def bad(device, how):
    "One variant for each way to go wrong."
    if how == "skips":
        raise Skip("needs a thing")
    actions = {"raises": lambda: 1 / 0, "hangs": lambda: time.sleep(60), "ends": lambda: os._exit(9),
               "killed": lambda: os.kill(os.getpid(), signal.SIGKILL), "forks": os.fork,
               "ends_parent": lambda: os.kill(os.getppid(), signal.SIGKILL) or time.sleep(60)}
    return Work(run=actions.get(how, int), notes={"parent": str(os.getppid())})

@benchmark(axes={"n": (1, 2)}, metrics=(Metric("drawn", unit="1", better=LOWER, exact=False),))
def draws(device, n):
    "Random data of the import and of the call."
    return Work(run=random.random, report=lambda drawn: {"drawn": CHANCE + drawn + HASH % 1000})
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """extra code → (source, what it holds, file of the processes that imported it); every import is expensive."""
    monkeypatch.setattr(parents, "EXPENSIVE_NS", 0)
    monkeypatch.setenv("TEST_MARKER", str(tmp_path / "pids"))

    def make(extra=""):
        folder = tmp_path / "s"
        folder.mkdir()
        (folder / "costly.py").write_text(SUITE.replace("EXTRA", extra))
        native = NativeSource([str(folder)])
        found = native.discover(Target())
        assert found.problems == ()
        (tmp_path / "pids").unlink()  # the discovery's
        return native, found, tmp_path / "pids"

    return make


def measure(made, *selectors, launches=2, targets=("here",), progress=None):
    native, found, pids = made
    experiments = plan(found.benchmarks, selectors, profile="quick", target=Target(), seed=1, launches=launches)
    places = [Target(label=label, variables={"SIDE": label}) for label in targets]
    experiments = [
        Experiment(
            benchmark=e.benchmark, policy=Policy(launches=launches), seed=e.seed + index,
            arms=tuple(Arm(variant=arm.variant, target=place) for arm in e.arms for place in places),
        )
        for index, e in enumerate(experiments)
    ]  # fmt: skip
    results, _ = run_experiments(
        experiments, device=FAKE, path=native.path, progress=progress or SilentProgress(), finished=lambda i, r: None
    )
    return results, pids.read_text().split()


def test_each_launch_imports_once_at_each_target_whatever_the_number_of_variants(suite):
    """The rehearsal shares the parents of the first launch; the others have parents of their own."""
    results, pids = measure(suite(), "costly.draws", "costly.bad[how=ok]", launches=3, targets=("base", "head"))
    assert len(pids) == len(set(pids)) == 3 * 2
    seeds = [[launch.hash_seed for launch in result.launches] for result in results]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3
    assert all(launch.forked for result in results for launch in result.launches)


def test_a_cheap_import_is_made_by_every_worker_anew(suite, monkeypatch):
    monkeypatch.setattr(parents, "EXPENSIVE_NS", 3600 * 10**9)
    (result,), pids = measure(suite(), "costly.draws", launches=2)
    assert len(set(pids)) == 2 + 2 * 2  # rehearsal and two launches of two arms
    assert not any(launch.forked for launch in result.launches)


def test_arms_of_a_launch_draw_the_same_data_in_forks_too_and_launches_do_not(suite):
    (result,), _ = measure(suite(), "costly.draws", targets=("base", "head"))
    rows = [r.measurement("drawn").launches for r in result.results]
    assert rows[0] == rows[1] == rows[2] == rows[3]
    assert rows[0][0] != rows[0][1]


def test_set_up_and_memory_count_the_import_as_in_a_fresh_process(suite, monkeypatch):
    """The parent's import is part of its fork's set-up, and what it held at its peak of the fork's peak."""
    made = suite("time.sleep(0.2)")
    (forked,), _ = measure(made, "costly.draws[n=1]")
    monkeypatch.setattr(parents, "EXPENSIVE_NS", 3600 * 10**9)
    (fresh,), _ = measure(made, "costly.draws[n=1]")
    for result in (forked, fresh):
        (arm,) = result.results
        assert all(row[0] > 200_000_000 for row in arm.measurement("set_up").launches)
        assert all(row[0] > 64_000_000 for row in arm.measurement("memory_growth").launches)
        assert all(row[0] > 64_000_000 for row in arm.measurement("peak_memory").launches)


@pytest.mark.parametrize(
    ("how", "kind", "says"),
    [
        ("raises", FailureKind.RAISED, "ZeroDivisionError"),
        ("hangs", FailureKind.TIMED_OUT, "no answer within 3 s; it was killed"),
        ("ends", FailureKind.DIED, "ended by itself with exit code 9"),
        ("killed", FailureKind.DIED, "was killed by SIGKILL"),
        ("forks", FailureKind.RAISED, "forks and lets the child return"),
        ("skips", FailureKind.SKIPPED, "needs a thing"),
    ],
)
def test_whatever_a_fork_does_is_a_failure_of_its_variant_alone(suite, how, kind, says):
    (result,), pids = measure(suite(), f"costly.bad[how={how}]", "costly.bad[how=ok]", launches=2)
    failures = {r.arm.variant.params["how"]: r.failure for r in result.results}
    assert failures["ok"] is None
    assert failures[how].kind is kind
    assert says in failures[how].message
    assert len(pids) == 2, "the parent lives on"


def test_a_parent_that_dies_takes_its_forks_along_and_is_replaced_for_the_others(suite):
    (result,), pids = measure(suite(), "costly.bad[how=ends_parent]", "costly.bad[how=ok]", launches=2)
    failures = {r.arm.variant.params["how"]: r.failure for r in result.results}
    assert failures["ok"] is None
    assert failures["ends_parent"].kind is FailureKind.DIED
    assert len(pids) == 3


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ("import threading; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", "starts threads"),
        ("FILE = open(__file__)", "leaves files or connections open"),
        ("import subprocess; subprocess.Popen(['sleep', '600'])", "starts processes"),
    ],
)
def test_what_an_import_leaves_behind_and_forks_would_share_gives_every_variant_a_process_of_its_own(suite, extra, why):
    progress = SilentProgress()
    (result,), pids = measure(suite(extra), "costly.draws", launches=1, progress=progress)
    assert [r.failure for r in result.results] == [None, None]
    assert not result.launches[0].forked
    assert len(set(pids)) == 4
    (said,) = progress.messages
    assert why in said
    assert said.startswith("costly is imported anew")


def test_a_module_that_cannot_be_imported_at_one_target_fails_there_and_is_tried_once(suite):
    made = suite("if os.environ.get('SIDE') == 'head': raise ImportError('no such thing in head')")
    results, pids = measure(made, "costly.draws", "costly.bad[how=ok]", targets=("base", "head"))
    for result in results:
        for arm in result.results:
            if arm.arm.target.label == "base":
                assert arm.failure is None
            else:
                assert "no such thing in head" in arm.failure.message
    assert len(pids) == 2 + 1  # base twice, head in the rehearsal


def parents_of(session, made):
    native, found, _ = made
    benchmark = next(b for b in found.benchmarks if b.name == "costly.bad")
    opened = Parents(session, benchmark, native.path, 1)
    opened.open([Target()])
    return opened


def test_a_fork_has_what_its_parent_imported_and_a_session_and_output_of_its_own(suite):
    with Session() as session:
        opened = parents_of(session, suite())
        one, two = opened.worker(Target()), opened.worker(Target())
        assert os.getsid(one.pid) == one.pid != os.getsid(two.pid)
        os.kill(one.pid, signal.SIGKILL)
        with pytest.raises(ArmFailed, match="was killed by SIGKILL"):
            one.ask("memory", 5.0)
        assert Path(f"/proc/{two.pid}").exists()
        opened.close()
        with pytest.raises(ArmFailed):
            two.ask("memory", 5.0)
        assert not Path(f"/proc/{two.pid}").exists()


def test_nothing_of_a_session_that_ends_by_an_error_survives(suite):
    made, pids = suite(), []

    def measure_and_fail():
        with Session() as session:
            opened = parents_of(session, made)
            pids.extend([opened.worker(Target()).pid, opened.worker(Target()).pid])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        measure_and_fail()
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_threads_of_this_process_are_an_obstacle_and_their_absence_is_told_by_the_system():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert forking.obstacle(forking.descriptors()) == "its import starts threads"
    finally:
        stop.set()
        thread.join()


def test_modules_share_parents_only_where_one_import_and_one_number_of_threads_serve_all():
    def experiment(source, **more):
        benchmark = Benchmark(name=source, version="1", suite=source.partition(":")[0], source=source, **more)
        return Experiment(benchmark=benchmark, arms=(), policy=Policy(), seed=1)

    found = modules(
        [experiment("one:a"), experiment("two:a"), experiment("one:b"), experiment("one:c", threads=2),
         experiment("one:d", primary="peak_memory")]
    )  # fmt: skip
    assert found == [[0, 2], [1], [3], [4]]
