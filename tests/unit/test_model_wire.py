"""The words and their JSON."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import Exit, WireError
from bench.model import Accelerator, Benchmark, Failure, FailureKind, Machine, variant_name
from bench.testing import make_run
from bench.wire import decode_part, decode_run, encode_part, encode_run, payload_sha

BEFORE_IMPORTS = "9e601ab7d373d89e86ec5591e39803804bf0be2b3fec9fa62675c62501a6ca77"

RUN = make_run(seed=5, failure=Failure(kind=FailureKind.WRONG, phase="check", message="no", detail="<b>\u2713"))


def test_a_run_survives_the_wire_unchanged():
    assert decode_run(encode_run(RUN)) == RUN


def test_an_experiment_survives_the_spool_unchanged():
    part = RUN.experiments[0]
    assert decode_part(encode_part(part), "x") == part


def test_equal_runs_have_equal_bytes_and_another_key_has_others():
    assert payload_sha(RUN) == payload_sha(decode_run(encode_run(RUN)))
    assert payload_sha(RUN) != payload_sha(replace(RUN, key="0" * 32))


def _document(**changes):
    document = json.loads(encode_run(RUN))
    document.update(changes)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a bench run"),
        (b'{"schema": "other"}', "not a bench run"),
        (_document(version=99), "wire version 99"),
        (_document(version="1"), "wire version '1'"),
        (_document(run={}), "missing required field"),
        (_document(run={**json.loads(encode_run(RUN))["run"], "status": "odd"}), "status"),
        (_document(run={**json.loads(encode_run(RUN))["run"], "started_at": "yesterday"}), "started_at"),
    ],
)
def test_a_bad_document_gets_one_sentence_with_its_origin(data, says):
    with pytest.raises(WireError, match=says) as caught:
        decode_run(data, "run.json")
    assert str(caught.value).startswith("run.json ")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code is Exit.USAGE


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise_anything_else(data):
    with pytest.raises(WireError):
        decode_run(data)


def test_variants_are_the_points_of_the_axes_less_the_excluded():
    benchmark = Benchmark(
        name="s.b", version="1", suite="s", source="m:b", axes={"a": [1, 2], "b": ["x", "y"], "c": [True]},
        baseline={"a": 1}, exclude=({"a": 2, "b": "y"},),
    )  # fmt: skip
    assert [v.name for v in benchmark.variants()] == [
        "s.b[a=1,b=x,c=true]",
        "s.b[a=1,b=y,c=true]",
        "s.b[a=2,b=x,c=true]",
    ]
    assert [v.baseline for v in benchmark.variants()] == [True, True, False]
    assert benchmark.group_of(benchmark.variants()[2]) == {"b": "x", "c": True}


def test_a_benchmark_without_axes_is_its_own_variant():
    assert variant_name("s.b", {}) == "s.b"


def test_the_fingerprint_sees_hardware_and_not_tags():
    machine = Machine(architecture="x86_64", cpu="A", physical_cores=2, logical_cores=4, memory_gib=8)
    assert replace(machine, tags=("fast",)).fingerprint == machine.fingerprint
    gpu = Accelerator(kind="gpu", model="G", driver="1")
    for other in (
        replace(machine, cpu="B"),
        replace(machine, memory_gib=16),
        replace(machine, accelerators=(gpu,)),
        replace(machine, accelerators=(replace(gpu, driver="2"),)),
    ):
        assert other.fingerprint != machine.fingerprint


def test_the_worker_needs_nothing_but_the_standard_library():
    """Any interpreter with any versions installed must be able to run it."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import bench.measure.worker; "
        "print([m for m in sys.modules if m.split('.')[0] in {'numpy', 'msgspec', 'click', 'psutil', 'rich'}])"
    )
    root = str(__import__("pathlib").Path(__import__("bench").__file__).parents[1])
    done = subprocess.run([sys.executable, "-S", "-I", "-c", code, root], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_runs_and_machines_from_before_imports_stay_the_same():
    """Digests as the schema before `quarantine` and `named` gave them: a stored run must still replay."""
    assert payload_sha(RUN) == BEFORE_IMPORTS
    assert RUN.machine.fingerprint == "2cfcb1a218cc48a5"
    assert payload_sha(replace(RUN, quarantine=("commit",))) != BEFORE_IMPORTS


def test_what_a_machine_does_not_tell_is_part_of_who_it_is():
    unknown = Machine(architecture=None, cpu=None, physical_cores=None, logical_cores=None, memory_gib=None)
    assert unknown.label == "unknown processor"
    assert unknown.fingerprint != replace(unknown, named="lab-3").fingerprint
    assert replace(unknown, named="lab-3", logical_cores=8).label == "lab-3, 8 cores"


def test_what_rounds_and_launches_learnt_to_tell_changes_no_stored_run():
    """A run from before they told it replays; one that tells it is another run, and comes back whole."""
    (experiment,) = RUN.experiments
    told = replace(
        experiment,
        launches=tuple(
            replace(
                launch, load=1.5,
                rounds=tuple(replace(r, io_pressure_ns=5, clock_mhz=2100.5, temperature_c=71.0) for r in launch.rounds),
            )
            for launch in experiment.launches
        ),
    )  # fmt: skip
    run = replace(RUN, experiments=(told,))
    assert payload_sha(run) != payload_sha(RUN)
    assert decode_run(encode_run(run)) == run
    old = json.loads(encode_run(run))
    for launch in old["run"]["experiments"][0]["launches"]:
        del launch["load"]
        for seen in launch["rounds"]:
            for name in ("io_pressure_ns", "memory_pressure_ns", "clock_mhz", "temperature_c"):
                del seen[name]
    assert decode_run(json.dumps(old).encode()) == RUN


def test_what_is_absent_and_what_was_asked_for_change_no_stored_run():
    """A run from before metrics could be absent replays; one that says why is another run, and comes back whole."""
    (experiment,) = RUN.experiments
    results = tuple(replace(r, absent={"energy": "no counter"}) for r in experiment.results)
    run = replace(RUN, experiments=(replace(experiment, results=results),))
    assert payload_sha(run) != payload_sha(RUN) == BEFORE_IMPORTS
    assert decode_run(encode_run(run)) == run
    plan = replace(experiment.experiment, policy=replace(experiment.experiment.policy, tail_ns=1))
    assert payload_sha(replace(RUN, experiments=(replace(experiment, experiment=plan),))) != BEFORE_IMPORTS
    old = json.loads(encode_run(run))
    for result in old["run"]["experiments"][0]["results"]:
        del result["absent"]
    for name in ("tail_ns", "allocations", "instructions"):
        del old["run"]["experiments"][0]["experiment"]["policy"][name]
    assert decode_run(json.dumps(old).encode()) == RUN
