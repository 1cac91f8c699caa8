"""What may explain an answer is said, and only that."""

from dataclasses import replace

from bench.disturbance import causes, disturbance
from bench.gate import judge
from bench.model import RoundConditions, Verdict
from bench.testing import make_pair


def experiment(*rounds, load=None, **options):
    """A gate's experiment whose launches all had these rounds (fields of RoundConditions)."""
    found = make_pair(launches=6, **options)
    seen = tuple(RoundConditions(arm=i % 2, round=i, wall_ns=1_000_000, **fields) for i, fields in enumerate(rounds))
    return replace(found, launches=tuple(replace(launch, rounds=seen, load=load) for launch in found.launches))


def test_a_quiet_machine_and_one_that_tells_nothing_explain_nothing():
    calm = {"involuntary_switches": 0, "io_pressure_ns": 10, "memory_pressure_ns": 0, "clock_mhz": 3000.0}
    assert causes(experiment(calm, calm, load=0.5)) == []
    assert causes(experiment({}, {})) == []
    assert disturbance(experiment({}, {})) == 0.0


def test_each_cause_is_named_with_its_size():
    busy = {"involuntary_switches": 3, "io_pressure_ns": 400_000, "memory_pressure_ns": 200_000}
    found = causes(experiment(busy, busy, load=7.25))
    assert found == [
        "100% of the rounds were disturbed (load up to 7.2)",
        "some task waited for a disk 40% of the time",
        "some task waited for memory 20% of the time",
    ]
    throttled = causes(experiment({"clock_mhz": 3600.0, "temperature_c": 97.0}, {"clock_mhz": 2100.0}))
    assert throttled == ["the clock ran between 2.1 and 3.6 GHz at up to 97 °C"]


def test_an_undecided_gate_says_what_the_machine_did():
    result = experiment({"clock_mhz": 3600.0}, {"clock_mhz": 2100.0}, noise=0.2)
    answer = judge(result)
    assert answer.verdict is Verdict.INCONCLUSIVE
    assert "the clock ran between 2.1 and 3.6 GHz" in answer.reason
    assert "clock" not in judge(experiment({"clock_mhz": 3600.0}, {"clock_mhz": 3600.0}, noise=0.2)).reason
