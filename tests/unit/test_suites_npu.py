"""NPUs by their vendors' own tools: answers of the CPU's int8, the whole network, the same program twice."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from bench.api import Skip, Wrong  # noqa: E402
from bench.measure.contract import judge  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import environments, npu  # noqa: E402
from suites.artifacts import Artifact  # noqa: E402
from suites.models import digits  # noqa: E402

IMAGES = 30
"""Of the 500: the emulators are slow."""


@pytest.fixture(scope="module", autouse=True)
def _short(tmp_path_factory):
    """A cache of our own, but for the environments, and a quarter of the training."""
    folders = {name: environments.folder_of(name) for name in environments.VENDORS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(environments, "folder_of", folders.__getitem__)
        patch.setattr(digits, "EPOCHS", 2)
        yield


def vendor(name):
    """Skips the test where the vendor's tools are not there."""
    try:
        environments.interpreter(name)
    except Skip as reason:
        pytest.skip(str(reason))


def made(**changes):
    """A network that is compiled as it should be."""
    logits = np.eye(10, dtype="float32")
    facts = {"operators": {"npu": 10, "cpu": 0}, "reproduced": True, **changes}
    artifact = Artifact(folder=Path("nowhere"), build_seconds=1.0, built_now=False)
    return npu.Compiled(npu=logits, cpu=logits, facts=facts, size_bytes=1, made=artifact)


def test_the_int8_network_on_the_cpu_reads_digits():
    work = npu.digits_cnn(FakeDevice(), "cpu")
    assert work.kind == "real"
    values = judge(work, work.run(), [m.name for m in (*digits.METRICS, npu.SAME, npu.ON_DEVICE, npu.COMPILE)])
    assert sum(values["accuracy"]) > 0.9 * digits.TESTS
    assert sum(values["agreement"]) > 0.97 * digits.TESTS
    assert values["on_device"] == 1


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (made(operators={"npu": 9, "cpu": 1}), "1 operators stayed on the CPU"),
        (made(operators={"npu": 0, "cpu": 0}), "0 run on the device"),
        (made(reproduced=False), "made once more, is another one"),
        (replace(made(), npu=np.roll(np.eye(10), 1, axis=1)), "reads 0% of the digits"),
    ],
)
def test_an_npu_that_falls_back_or_misreads_is_wrong(found, message):
    assert made().check()
    with pytest.raises(Wrong, match=message):
        found.check()


def test_a_cpu_network_with_broken_ranges_is_wrong(monkeypatch):
    work = npu.digits_cnn(FakeDevice(), "cpu")
    monkeypatch.setattr(npu.digits, "accuracy", lambda logits: {"accuracy": npu.Items([1, 0, 0]), "agreement": ()})
    with pytest.raises(Wrong):
        judge(work, work.run(), [])


def test_without_the_environment_the_variant_is_skipped_with_the_way_to_get_it(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCH_ENVIRONMENTS", raising=False)
    monkeypatch.setattr(environments, "folder_of", lambda name: tmp_path / name)
    for place, command in (("hexagon", "qnn"), ("ethos_u55", "ethos-u")):
        with pytest.raises(Skip, match=rf"python -m suites\.environments {command}$"):
            npu.digits_cnn(FakeDevice(), place)


def test_a_program_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "interpreter", lambda name: Path(sys.executable))
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.exit('no such chip: ' + sys.argv[1])")
    with pytest.raises(RuntimeError, match=r"program.py failed in .* qnn \(exit code 1\):\nno such chip: x"):
        environments.run("qnn", program, ["x"])


def test_an_unknown_environment_is_named():
    done = subprocess.run(
        [sys.executable, "-m", "suites.environments", "abacus"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "no environment abacus; there are ethos-u, qnn" in done.stderr) == (2, True)


@pytest.mark.slow
def test_qualcomms_emulator_answers_like_the_cpu():
    vendor("qnn")
    found = npu.hexagon(IMAGES)
    assert found.check()
    assert found.facts["operators"]["cpu"] == 0
    assert len(found.npu) == IMAGES
    assert np.abs(found.npu - found.cpu).max() < 0.5, "the same integers, but for a step or two of the last layer"


@pytest.mark.slow
def test_arms_compiler_takes_the_whole_network_and_is_exact():
    vendor("ethos-u")
    found = npu.ethos_u("u55_128", IMAGES)
    assert found.check(), "all operators on the NPU, two compilations the same, answers of the CPU's int8"
    assert found.facts["operators"] == {"npu": 10, "cpu": 0}
    assert found.facts["macs"] == 905088, "conv 8×8×32×9 + conv 4×4×64×32×9 + conv 4×4×64×64×9 + linear 640"
    assert found.facts["cycles"] > found.facts["macs"] / 128, "a chip of 128 multipliers cannot be faster"
    assert np.abs(found.npu - found.cpu).max() < 0.5
