"""Every way prepares the same picture; another picture, and one prepared wrongly, is called wrong."""

from __future__ import annotations

import io

import pytest

np = pytest.importorskip("numpy")
cv2 = pytest.importorskip("cv2")
image = pytest.importorskip("PIL.Image")

from bench.api import Wrong  # noqa: E402
from bench.testing import FakeDevice  # noqa: E402
from suites import preparation, preprocessing  # noqa: E402
from suites.models import photographs  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _small(tmp_path_factory):
    """A cache of our own and small photographs, large enough that half the size still does."""
    threads = cv2.getNumThreads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(photographs, "SIZES", {preprocessing.SMALL: (800, 600), preprocessing.LARGE: (800, 600)})
        preprocessing.naive.cache_clear()
        yield
        preprocessing.naive.cache_clear()
    cv2.setNumThreads(threads)


@pytest.mark.parametrize("way", preparation.WAYS)
def test_way_prepares_the_picture_and_damage_is_wrong(way):
    work = preprocessing.image(FakeDevice(), way)
    found = work.run()
    assert found.shape == (3, preparation.SIDE, preparation.SIDE)
    assert found.dtype == np.float32
    assert work.check(found) is True
    decibel = work.report(found)["psnr"]
    assert (decibel == preparation.MOST_DB) == (way == "pillow")
    assert decibel > 35
    for damaged in (found[::-1], found[:, :, ::-1], found + 0.3, found * float("nan"), np.roll(found, 8, axis=2)):
        with pytest.raises(Wrong, match="dB to the naive way"):
            work.check(damaged)
    with pytest.raises(Wrong, match="prepared as"):
        work.check(found.astype("float64"))
    with pytest.raises(Wrong, match="prepared as"):
        work.check(found[:, 1:])


@pytest.mark.parametrize("way", [way for way in preprocessing.POOLS if way != "pillow_processes"])
def test_batch_is_prepared_in_order_and_another_order_is_wrong(way):
    work = preprocessing.batch(FakeDevice(), way)
    try:
        found = work.run()
        assert len(found) == work.items == photographs.COUNT
        assert work.check(found) is True
        with pytest.raises(Wrong, match="dB"):
            work.check(found[::-1])
        with pytest.raises(Wrong, match="7 images"):
            work.check(found[1:])
    finally:
        if work.close:
            work.close()


def test_processes_prepare_the_same():
    work = preprocessing.batch(FakeDevice(), "pillow_processes")
    try:
        found = work.run()
        assert work.check(found) is True
        assert work.report(found)["psnr"] == preparation.MOST_DB
    finally:
        work.close()


@pytest.mark.parametrize("order", [preprocessing.one_by_one, preprocessing.one_ahead])
def test_pipeline_keeps_order_and_prepares_all(order):
    assert list(order(lambda blob: blob * 2, [b"a", b"b", b"c"])) == [b"aa", b"bb", b"cc"]
    assert list(order(len, [b"one"])) == [3]


@pytest.mark.parametrize("order", ["serial", "prefetched"])
def test_pipeline_gives_the_answers_and_a_lost_image_is_wrong(order, monkeypatch):
    """A stand-in for the network: what matters here is which pictures it is given, and when."""

    class Session:
        def run(self, names, inputs):
            return [inputs["input"].mean(axis=(2, 3))]

    class Made:
        built_now, build_seconds = False, 0.0

        def __truediv__(self, name):
            return name

    monkeypatch.setattr(preprocessing.vision, "graph", lambda name: Made())
    monkeypatch.setattr(preprocessing.engines, "ort_session", lambda model, threads: Session())
    work = preprocessing.pipeline(FakeDevice(), order, 1)
    found = work.run()
    assert found.shape == (photographs.COUNT, 3)
    assert work.check(found) is True
    for damaged in (found[1:], found[::-1]):
        with pytest.raises(Wrong, match="one after the other"):
            work.check(damaged)


def test_photographs_stay_and_differ():
    first, second = photographs.draw(0, 300, 200), photographs.draw(1, 300, 200)
    assert first.shape == (200, 300, 3)
    assert np.array_equal(first, photographs.draw(0, 300, 200))
    assert np.abs(first.astype(int) - second).mean() > 20
    assert first.std() > 25


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"exif": b"Exif\0\0" + bytes(500)}])
def test_dimensions_are_read_from_the_header(options):
    stream = io.BytesIO()
    image.fromarray(np.zeros((123, 457, 3), "uint8")).save(stream, "JPEG", **options)
    assert preparation.dimensions(stream.getvalue()) == (457, 123)


@pytest.mark.parametrize(("size", "reduction"), [((3000, 2000), 4), ((800, 600), 2), ((300, 280), 1), ((200, 100), 1)])
def test_reduction_never_goes_below_what_is_needed(size, reduction, monkeypatch):
    asked = []
    monkeypatch.setattr(preparation, "dimensions", lambda blob: size)
    monkeypatch.setattr(preparation, "_opencv", lambda blob, k: asked.append(k))
    preparation.opencv_reduced(b"")
    assert asked == [reduction]


def test_psnr_is_its_definition():
    one = np.zeros((3, 4, 4), "float32")
    other = one + (0.1 / np.array(preparation.DEVIATION, "float32"))[:, None, None]  # a tenth of white everywhere
    assert preparation.psnr(one, other) == pytest.approx(20, abs=1e-4)
    assert preparation.psnr(one, one) == preparation.MOST_DB
