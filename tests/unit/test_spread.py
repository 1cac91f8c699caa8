"""The harness that asks what makes launches of the same code differ."""

import subprocess
import sys
from dataclasses import replace
from statistics import stdev

import numpy as np
import pytest

from bench.compare import log_ratios
from bench.model import RoundConditions
from bench.testing import make_pair
from benchmarks.hogs import hogs
from benchmarks.spread import SETTINGS, SITE, robust, table, target


def test_the_robust_spread_is_that_of_normal_values_whatever_a_few_do():
    values = np.random.default_rng(1).normal(5, 2, 4001)
    assert robust(list(values)) == pytest.approx(2, rel=0.05)
    assert robust([*values, *[1e9] * 200]) == pytest.approx(2, rel=0.1)


def under(setting, **facts):
    made = make_pair(base=target(setting, "base", False), head=target(setting, "head", False), **facts)
    rounds = tuple(RoundConditions(arm=a, round=0, wall_ns=1, minor_faults=30) for a in (0, 1))
    return replace(made, launches=tuple(replace(launch, rounds=rounds) for launch in made.launches))


def test_a_line_has_spread_faults_and_the_time_against_the_first_setting():
    """Ten samples of one call a launch and arm: 60 faults over 20 calls."""
    first = under("default", launches=9, noise=0.02)
    second = under("retain", launches=9, noise=0.02, seed=1)
    lines = table([first, second]).splitlines()[1:]
    assert [line.split()[:3] for line in lines] == [["demo.work", "default", "9"], ["demo.work", "retain", "9"]]
    assert f"{stdev(log_ratios(first, 'cpu_time')):.2%}" in lines[0]
    assert [line.split()[-2:] for line in lines] == [["3.0", "1.000×"], ["3.0", lines[1].split()[-1]]]
    assert table([under("default", launches=2)]).count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "says"),
    [("no-collector", "False True"), ("default", "True True"), ("default ordinary", "True False")],
)
def test_a_setting_reaches_the_process(setting, says):
    """Whether collections happen, and whether the priority can be raised at all."""
    name, _, ordinary = setting.partition(" ")
    look = "import gc, os\ntry: os.setpriority(os.PRIO_PROCESS, 0, 1)\nexcept OSError: print(gc.isenabled(), False)\n"
    look += "else: print(gc.isenabled(), True)"
    variables = {**target(name, "base", bool(ordinary)).variables, "PATH": ""}
    assert SITE in variables["PYTHONPATH"]
    done = subprocess.run([sys.executable, "-c", look], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == says
    assert set(SETTINGS) >= {"default", "retain"}


def test_hogs_are_gone_with_the_block():
    with hogs(1, 1) as started:
        assert [process.poll() for process in started] == [None, None]
    assert all(process.poll() is not None for process in started)
