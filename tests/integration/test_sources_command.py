"""Any command: whole processes side by side, with their own CPU time and memory."""

import sys

import pytest

from bench.compare import estimate
from bench.errors import UsageError
from bench.experiment import run_experiments
from bench.model import FailureKind, Target
from bench.plan import plan
from bench.sources.command import CommandSource
from bench.testing import SilentProgress
from bench.tradeoffs import tradeoffs

BUSY = "python -c 'import time\nwhile time.process_time() < 0.15: pass'"
IDLE = "sleep 0.15"
LARGE = "python -c 'bytearray(100_000_000)'"
FAILS = "sh -c 'echo first >&2; echo last words >&2; exit 3'"
KILLED = "sh -c 'kill -SEGV $$'"
MISSING = "no-such-program --at-all"
WHERE = f"python -c 'import sys; sys.exit(sys.executable != \"{sys.executable}\")'"


@pytest.fixture(scope="module")
def result():
    found = CommandSource([BUSY, IDLE, LARGE, FAILS, KILLED, MISSING, WHERE]).discover(Target())
    experiments = plan(found.benchmarks, [], profile="quick", target=Target(), seed=1, launches=1)
    (result,), _ = run_experiments(
        experiments, device="bench.testing:FakeDevice", path=(), progress=SilentProgress(),
        finished=lambda index, result: None,
    )  # fmt: skip
    return result


@pytest.fixture(scope="module")
def arms(result):
    return {arm.arm.variant.params["command"]: arm for arm in result.results}


def value(arm, metric):
    return estimate(arm.measurement(metric)).value


def test_cpu_time_is_the_childs_and_a_wait_is_none(arms):
    assert value(arms[BUSY], "cpu_time") >= 145e6
    assert value(arms[IDLE], "cpu_time") < 50e6
    assert value(arms[IDLE], "time") >= 150e6
    assert value(arms[BUSY], "time") >= value(arms[BUSY], "cpu_time") * 0.95


def test_peak_memory_is_the_childs(arms):
    assert value(arms[LARGE], "peak_memory") > 100e6
    assert value(arms[IDLE], "peak_memory") < 60e6


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (FAILS, "exit code 3: last words"),
        (KILLED, "killed by SIGSEGV"),
        (MISSING, "there is no program no-such-program"),
    ],
)
def test_a_program_that_fails_is_a_failure_with_its_last_words(arms, command, says):
    assert arms[command].failure.kind is FailureKind.RAISED
    assert arms[command].failure.message == says


def test_a_failure_keeps_what_the_program_said_and_nothing_of_ours(arms):
    assert arms[FAILS].failure.detail == "first\nlast words"
    assert arms[KILLED].failure.detail == ""


def test_python_is_the_targets(arms):
    assert arms[WHERE].failure is None


def test_the_first_of_several_commands_is_their_baseline(result):
    first, *others = tradeoffs(result)
    assert first.baseline
    assert "time" in others[0].comparisons


def test_one_command_has_no_baseline_and_the_same_name():
    (benchmark,) = CommandSource([IDLE]).discover(Target()).benchmarks
    assert benchmark.baseline == {}
    assert benchmark.variants()[0].name == "command[command=sleep 0.15]"


@pytest.mark.parametrize(
    ("commands", "says"),
    [
        (["  "], "needs a program"),
        (["a 'b"], "cannot be split"),
        (["a", "a"], "the same command line twice"),
        (["cat x | wc -l"], r"has '\|', which only a shell understands.*sh -c 'cat x \| wc -l'"),
        (["make && ./x"], "has '&'"),
        (["x > y"], "has '>'"),
        (["N=1 python x.py"], "has 'N='"),
        (["x $(y)"], r"has '\$\('"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_a_usage_error(commands, says):
    with pytest.raises(UsageError, match=says):
        CommandSource(commands)


def test_what_is_quoted_is_the_programs_own():
    CommandSource(["python -c 'a = 1; print(a > 0 | 1)'", 'x "a & b" a\\;b', "x --n=1 https://example.org/?a=1"])
