"""One benchmark of every kind that asv knows."""

import os
import time

from asv_runner.benchmarks.mark import SkipNotImplemented, skip_benchmark, skip_for_params

state = {"module": 0}


def setup(*args):
    state["module"] += 1


def time_sum():
    sum(range(1000))


def timeraw_busy():
    return (
        """
        end = time.perf_counter() + pause
        while time.perf_counter() < end:
            pass
        """,
        "import time; pause = 0.002",
    )


def timeraw_broken():
    return "import nothing_of_that_name"


def track_length():
    return 42


track_length.unit = "bytes"
track_length.version = "set by hand"


def track_nothing():
    return float("nan")


class TrackCalls:
    """Counts how often it was called: once, in each process."""

    calls = 0
    unit = "calls"

    def track_calls(self):
        self.calls += 1
        return self.calls


def mem_list():
    return [None] * 10_000


class PeakMemory:
    timeout = 33

    def peakmem_bytes(self):
        bytearray(30_000_000)


class Sorting:
    """Needs a fresh list for every call, or it sorts what is sorted."""

    params = ([1000], ["random", "reversed"])
    param_names = ("n", "order")

    def setup(self, n, order):
        self.data = [(i * 7919) % n for i in range(n)] if order == "random" else list(range(n, 0, -1))
        self.used = False

    def time_sort(self, n, order):
        assert not self.used, "called twice with one set-up"
        self.used = True
        self.data.sort()

    def teardown(self, n, order):
        del self.data


class Objects:
    """Parameters may be anything."""

    params = ((len, {"a": 1}, object(), object()),)
    param_names = ("thing",)

    def track_type(self, thing):
        return {"builtin_function_or_method": 1, "dict": 2, "object": 3}[type(thing).__name__]


class Skipping:
    params = ("ok", "not implemented", "by decorator", "late")
    param_names = ("how",)

    def setup(self, how):
        if how == "not implemented":
            raise NotImplementedError("no such thing here")

    @skip_for_params([("by decorator",)])
    def time_it(self, how):
        if how == "late":
            raise SkipNotImplemented("found out late")


@skip_benchmark
def time_never():
    raise AssertionError


class Cached:
    """The cache is made once, and files beside it stay."""

    params = (1, 2)

    def setup_cache(self):
        with open("made", "a") as file:  # noqa: PTH123 - as a suite would
            file.write("x")
        time.sleep(0.01)
        return {"pid": os.getpid()}

    def track_builds(self, cache, n):
        assert cache["pid"] != os.getpid() or os.path.getsize("made") == 1  # noqa: PTH202
        return os.path.getsize("made")  # noqa: PTH202


class BadCache:
    params = (1, 2)

    def setup_cache(self):
        raise ValueError("cannot build")

    def time_it(self, cache, n):
        pass


class Once:
    """asv runs this once in a process."""

    number = 1
    repeat = 1
    warmup_time = 0
    calls = 0

    def time_once(self):
        self.calls += 1
        assert self.calls == 1


def time_raises():
    raise ZeroDivisionError("division by zero")


class OwnTimer:
    """Tells a quarter of a second for every call."""

    told = 0.0

    def timer(self):
        return self.told

    def time_told(self):
        self.told += 0.25
