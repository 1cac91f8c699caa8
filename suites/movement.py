"""What does moving data cost: memory, page cache, storage, host to graph, host to device, and can it be hidden?"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.api import LOWER, Metric, Skip, Work, Wrong, benchmark
from suites.artifacts import Artifact, artifact
from suites.frames import FRAME_PLACES, prepared_error
from suites.imports import need

INSTALL = "pip install 'inference-bench[suites]'"
TORCH = "pip install 'inference-bench[torch]'"

MEGA = 1_000_000
PAGE = mmap.PAGESIZE
CHUNKS = 8
"""Parts that a stream of data is moved and used in."""

CHUNK = 8 * MEGA // PAGE * PAGE
SIDE = 512
"""Of the matrices whose product stands for the use of a chunk."""

WAIT = 0.012
"""Seconds for which a chunk keeps a device busy, and the CPU idle: a stand-in, no measured device."""

DROPPED = "posix_fadvise(DONTNEED) before every call; a host of a virtual machine may still cache"

BLOB = "blob"
PLACES = ("memory", "page_cache", "page_cache_reused", "mapped", "storage")

STORED = Metric(
    "from_storage", unit="B", better=LOWER, kind="size", help="bytes that the kernel fetched for a call", exact=False
)


@benchmark(
    axes={"place": ("memory", "page_cache", "mapped")}, baseline={"place": "page_cache"}, metrics=(STORED,),
    requires=("numpy",), profiles=("quick",), launches=5,
)  # fmt: skip
def small(device: Any, place: str) -> Work:
    """16 MB of weights into an array: how far is the page cache from memory, and does mapping pay?"""
    return moving(place, 16)


@benchmark(
    axes={"place": PLACES, "megabytes": (64, 240)}, baseline={"place": "page_cache"}, metrics=(STORED,),
    requires=("numpy",), profiles=("full",), launches=5,
)  # fmt: skip
def weights(device: Any, place: str, megabytes: int) -> Work:
    """Weights into an array, 240 MB being ResNet-152 in fp32: what does each place that they come from cost?"""
    return moving(place, megabytes)


@benchmark(
    axes={"place": tuple(FRAME_PLACES)}, baseline={"place": "host_naive"}, launches=7, profiles=("full",),
    metrics=(Metric("error", unit="1", better=LOWER, help="relative L2 error of the answer to host_naive's"),),
    requires=("numpy", "cv2", "openvino"),
)  # fmt: skip
def frames(device: Any, place: str) -> Work:
    """A 720p frame to MobileNetV3's probabilities: prepared on the host, badly or well, or in the graph?"""
    call, notes = FRAME_PLACES[place](device.threads)
    return Work(
        run=call,
        check=lambda found: prepared_error(found, device.threads, refuse=True) >= 0,
        report=lambda found: {"error": round(prepared_error(found, device.threads), 4)},
        notes=notes,
    )


@benchmark(
    axes={"order": ("serial", "prefetched"), "use": ("computing", "waiting")}, baseline={"order": "serial"},
    requires=("numpy",), profiles=("full",), launches=7, threads=2,
)  # fmt: skip
def overlap(device: Any, order: str, use: str) -> Work:
    """64 MB read in eight parts, each used on one core or waited for: does reading ahead hide the reading?"""
    numpy = need("numpy", INSTALL)
    file = blob(-(-CHUNKS * CHUNK // MEGA)) / BLOB
    matrix = numpy.random.default_rng(0).random((SIDE, SIDE), dtype="float32")
    stream = reads_ahead if order == "prefetched" else reads

    def use_of(part: Any) -> int:
        if use == "waiting":
            time.sleep(WAIT)
        else:
            for _ in range(4):
                matrix @ matrix
        return int(part[::PAGE].sum())

    expected = int(numpy.fromfile(file, "uint8", CHUNKS * CHUNK)[::PAGE].sum())

    def check(found: int) -> bool:
        if found != expected:
            raise Wrong(f"the parts add up to {found}, not {expected}")
        return True

    return Work(run=lambda: sum(use_of(part) for part in stream(file)), items=CHUNKS, check=check)


@benchmark(
    axes={"copy": ("pageable", "pinned", "asynchronous"), "megabytes": (64, 240)}, baseline={"copy": "pageable"},
    requires=("numpy", "torch", "device:cuda"), profiles=("full",), launches=5,
)  # fmt: skip
def cuda_copies(device: Any, copy: str, megabytes: int) -> Work:
    """Host memory to a GPU: what do pinned pages gain, and a copy that is not waited for one by one?"""
    torch = need("torch", TORCH)
    parts = [torch.randn(megabytes * MEGA // 4 // CHUNKS) for _ in range(CHUNKS)]
    if copy != "pageable":
        parts = [part.pin_memory() for part in parts]
    targets = [torch.empty_like(part, device=device.name) for part in parts]

    def run() -> Any:
        for part, target in zip(parts, targets, strict=True):
            target.copy_(part, non_blocking=copy == "asynchronous")
        return targets

    def check(found: Any) -> bool:
        torch.cuda.synchronize(device.name)
        if not all(torch.equal(a.cpu(), b) for a, b in zip(found, parts, strict=True)):
            raise Wrong("what arrived on the device is not what was sent")
        return True

    return Work(
        run=run, check=check, size_bytes=megabytes * MEGA,
        notes={"gpu": torch.cuda.get_device_name(device.name)},
    )  # fmt: skip


@benchmark(
    axes={"order": ("serial", "streams")}, baseline={"order": "serial"}, profiles=("full",), launches=5,
    requires=("torch", "device:cuda"),
)  # fmt: skip
def cuda_overlap(device: Any, order: str) -> Work:
    """Eight pinned parts copied to a GPU and multiplied there: does a stream of its own hide the copies?"""
    torch = need("torch", TORCH)
    side = 2048
    random = torch.Generator().manual_seed(0)
    parts = [torch.randn(side, side, generator=random).pin_memory() for _ in range(CHUNKS)]
    matrix = torch.randn(side, side, generator=random).to(device.name)
    copies = torch.cuda.Stream(device.name)

    def serial() -> Any:
        total = torch.zeros(side, side, device=device.name)
        for part in parts:
            total += part.to(device.name) @ matrix
        return total

    def streams() -> Any:
        total = torch.zeros(side, side, device=device.name)
        compute = torch.cuda.current_stream(device.name)
        copies.wait_stream(compute)
        arrived = []
        with torch.cuda.stream(copies):
            for part in parts:
                target = part.to(device.name, non_blocking=True)
                arrived.append((target, copies.record_event()))
        for target, event in arrived:
            compute.wait_event(event)
            target.record_stream(compute)  # its memory is not given to the next copy before it was read
            total += target @ matrix
        return total

    run = streams if order == "streams" else serial

    def check(found: Any) -> bool:
        expected = sum(part.double() for part in parts)[:16] @ matrix.cpu().double()
        size = float((found[:16].cpu().double() - expected).norm() / expected.norm())
        if not size <= 1e-3:  # TF32 would be within; a part that was read before it arrived is not
            raise Wrong(f"the sum of the products is {size:.1e} off")
        return True

    return Work(
        run=run, items=CHUNKS, check=check,
        notes={"gpu": torch.cuda.get_device_name(device.name)},
    )  # fmt: skip


def blob(megabytes: int) -> Artifact:
    """BLOB: random bytes, written through to the storage so that they can be dropped from the page cache."""

    def build(folder: Path) -> None:
        numpy = need("numpy", INSTALL)
        random = numpy.random.default_rng(0)
        with (folder / BLOB).open("wb") as stream:
            for _ in range(megabytes):
                stream.write(random.bytes(MEGA))
            stream.flush()
            os.fsync(stream.fileno())

    return artifact(f"blob-{megabytes}", build, sources=[Path(__file__)], inputs={"megabytes": str(megabytes)})


def moving(place: str, megabytes: int) -> Work:
    """Bytes into an array of this process; every page of it has been touched when a call ends."""
    numpy = need("numpy", INSTALL)
    file = blob(megabytes) / BLOB
    source = numpy.fromfile(file, "uint8")
    reused = numpy.zeros_like(source)

    def memory() -> Any:
        numpy.copyto(reused, source)
        return reused

    def read_into() -> Any:
        with file.open("rb", buffering=0) as stream:
            stream.readinto(reused)
        return reused

    def mapped() -> Any:
        array = numpy.memmap(file, "uint8", "r")
        array[::PAGE].sum()
        return array

    calls: dict[str, Callable[[], Any]] = {
        "memory": memory,
        "page_cache": lambda: numpy.fromfile(file, "uint8"),
        "page_cache_reused": read_into,
        "mapped": mapped,
        "storage": lambda: numpy.fromfile(file, "uint8"),
    }
    if place == "storage":
        fetched = stored_bytes(lambda: (drop(file), calls["storage"]()))
        if fetched < 0.9 * source.size:
            raise Skip(
                f"{file.parent} cannot be read from storage: after its pages were dropped the kernel still fetched "
                f"only {fetched} of {source.size} bytes; let BENCH_CACHE lie on a disk"
            )

    def check(found: Any) -> bool:
        if not numpy.array_equal(found, source):
            raise Wrong("the array holds other bytes than the file")
        return True

    def report(_: Any) -> Mapping[str, float]:
        if place == "storage":
            drop(file)
        return {"from_storage": stored_bytes(calls[place])}

    return Work(
        run=calls[place],
        check=check,
        report=report,
        prepare=(lambda: drop(file)) if place == "storage" else None,
        size_bytes=source.size,
        notes={"dropped": "posix_fadvise(DONTNEED); a host of this machine may still cache"}
        if place == "storage"
        else {},
    )


def drop(file: Path) -> None:
    """Take the file's pages out of the page cache."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def stored_bytes(call: Callable[[], object]) -> int:
    """Bytes that the kernel fetched from storage for this process while `call` ran (Linux; else 0)."""

    def fetched() -> int:
        try:
            lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("read_bytes")), 0)

    before = fetched()
    call()
    return fetched() - before


def reads(file: Path) -> Iterator[Any]:
    """The parts of the file, each read when it is asked for."""
    for index in range(CHUNKS):
        yield read(file, index)


def reads_ahead(file: Path) -> Iterator[Any]:
    """The parts of the file, each read by another thread while the one before is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(read, file, 0)
        for index in range(1, CHUNKS + 1):
            part = coming.result()
            if index < CHUNKS:
                coming = pool.submit(read, file, index)
            yield part


def read(file: Path, index: int) -> Any:
    """One part of the file, dropped from the page cache first: from storage, where there is one."""
    numpy = need("numpy", INSTALL)
    with file.open("rb", buffering=0) as stream:
        os.posix_fadvise(stream.fileno(), index * CHUNK, CHUNK, os.POSIX_FADV_DONTNEED)
        return numpy.fromfile(stream, "uint8", CHUNK, offset=index * CHUNK)
