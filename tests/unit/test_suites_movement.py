"""What arrives is what was sent; other bytes, other pixels and a lost part are called wrong."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from bench.api import Skip, Wrong  # noqa: E402
from bench.measure.contract import require  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import frames, movement  # noqa: E402
from suites.models import vision  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _small(tmp_path_factory):
    """A cache of our own, short files, small images."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(movement, "CHUNK", 16 * movement.PAGE)
        patch.setattr(movement, "WAIT", 0.001)
        patch.setattr(movement, "SIDE", 32)
        patch.setattr(vision, "SHAPE", (3, 64, 64))
        patch.setattr(vision.images, "__defaults__", (2, 0, 64))
        frames._expected.cache_clear()
        yield
        frames._expected.cache_clear()


@pytest.mark.parametrize("place", movement.PLACES)
def test_every_place_gives_the_bytes_and_others_are_wrong(place):
    try:
        work = movement.moving(place, 2)
    except Skip as skip:
        pytest.skip(str(skip))  # a cache in memory has no storage behind it
    if work.prepare:
        work.prepare()
    found = work.run()
    assert work.check(found) is True
    fetched = work.report(found)["from_storage"]
    assert fetched >= 0.9 * work.size_bytes if place == "storage" else fetched < 0.5 * work.size_bytes
    damaged = np.array(found)
    damaged[-1] ^= 1
    with pytest.raises(Wrong, match="other bytes"):
        work.check(damaged)
    with pytest.raises(Wrong, match="other bytes"):
        work.check(found[:-1])


def test_storage_that_is_memory_is_skipped(monkeypatch):
    monkeypatch.setattr(movement, "stored_bytes", lambda call: 0)
    with pytest.raises(Skip, match="BENCH_CACHE"):
        movement.moving("storage", 2)


@pytest.mark.parametrize("use", ["computing", "waiting"])
@pytest.mark.parametrize("order", ["serial", "prefetched"])
def test_parts_come_in_order_and_whole(order, use):
    work = movement.overlap(FakeDevice(), order, use)
    assert work.check(work.run()) is True
    with pytest.raises(Wrong, match="add up"):
        work.check(work.run() - 1)
    file = movement.blob(-(-movement.CHUNKS * movement.CHUNK // movement.MEGA)) / movement.BLOB
    stream = movement.reads_ahead if order == "prefetched" else movement.reads
    joined = np.concatenate(list(stream(file)))
    assert joined.tobytes() == file.read_bytes()[: movement.CHUNKS * movement.CHUNK]


def test_reading_ahead_that_loses_a_part_is_wrong(monkeypatch):
    whole = movement.reads_ahead
    monkeypatch.setattr(movement, "reads_ahead", lambda file: list(whole(file))[:-1])
    work = movement.overlap(FakeDevice(), "prefetched", "waiting")
    with pytest.raises(Wrong, match="add up"):
        work.check(work.run())


@pytest.fixture
def _engine():
    for package in ("cv2", "openvino", "onnx", "onnxruntime", "torch"):
        pytest.importorskip(package)


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize("place", frames.FRAME_PLACES)
def test_frame_is_prepared_alike_everywhere(place):
    work = movement.frames(FakeDevice(), place)
    found = work.run()
    assert found.shape == (1, 1000)
    assert float(found.sum()) == pytest.approx(1, abs=1e-4)
    assert work.check(found) is True
    assert work.report(found)["error"] <= frames.TOLERANCE
    with pytest.raises(Wrong, match="relative error"):
        work.check(found[:, ::-1])


@pytest.mark.usefixtures("_engine")
def test_swapped_colours_and_a_forgotten_mean_are_wrong(monkeypatch):
    right = frames.host_ordered(1)[0]()
    assert frames.prepared_error(right, 1, refuse=True) < frames.TOLERANCE
    pixels = frames.frame()
    with monkeypatch.context() as patch:
        patch.setattr(frames, "frame", lambda: pixels[:, :, ::-1].copy())
        swapped = frames.in_graph(1)[0]()
    with monkeypatch.context() as patch:
        patch.setattr(frames, "MEAN", (0.0, 0.0, 0.0))
        shifted = frames.host_ordered(1)[0]()
    for found in (swapped, shifted):
        with pytest.raises(Wrong, match="relative error"):
            frames.prepared_error(found, 1, refuse=True)


@pytest.mark.parametrize("benchmark_of", [movement.cuda_copies, movement.cuda_overlap])
def test_gpu_variants_are_skipped_without_one(benchmark_of):
    with pytest.raises(Skip, match="needs the device cuda"):
        require(benchmark_of.__bench_benchmark__.requires, "cpu")
