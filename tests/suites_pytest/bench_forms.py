"""Every way of using the fixture that suites use."""

import threading
import unittest

import pytest


def test_call(benchmark, numbers):
    """Sum a hundred numbers."""
    benchmark.extra_info["numbers"] = len(numbers)
    assert benchmark(sum, numbers) == 4950
    assert benchmark.stats["mean"] > 0
    assert benchmark.stats.stats.min <= benchmark.stats.stats.max


@pytest.mark.benchmark(group="sorting")
@pytest.mark.parametrize("reverse", [False, True], ids=["up", "down"])
@pytest.mark.parametrize("n", [10, 100])
def test_cases(benchmark, n, reverse):
    assert benchmark(sorted, range(n), reverse=reverse)[0] == (n - 1 if reverse else 0)


def test_main_thread(benchmark):
    assert benchmark(threading.current_thread) is threading.main_thread()


def test_pedantic_setup(benchmark):
    made = []

    def setup():
        made.append([])
        return (made[-1],), {"item": 1}

    def fill(target, item):
        assert not target, "called twice with one set-up"
        target.append(item)

    torn = []
    benchmark.pedantic(fill, setup=setup, teardown=lambda target, item: torn.append(target), rounds=10)
    assert torn == made
    assert all(len(target) == 1 for target in made)


def test_pedantic_once(benchmark):
    calls = []
    benchmark.pedantic(calls.append, args=(1,))
    assert calls == [1]


def test_around(quick):
    assert quick(lambda: 7) == 7


@pytest.mark.benchmark
def test_whole(numbers):
    sum(numbers)


def test_codspeed_name(codspeed_benchmark):
    codspeed_benchmark(int)


class TestClass:
    @pytest.fixture(autouse=True)
    def keep(self, benchmark):
        self.benchmark = benchmark

    def test_method(self):
        self.benchmark(int)

    def test_unused(self):
        pass


def test_not_a_benchmark():
    raise AssertionError("must not run")


@pytest.mark.skip(reason="no such machine")
def test_skipped(benchmark):
    benchmark(int)


@pytest.mark.xfail(reason="known", strict=True)
def test_expected(benchmark):
    benchmark(int)
    raise AssertionError


def test_skips_late(benchmark):
    benchmark(pytest.skip, "found out late")


def test_fails_before(benchmark):
    raise ValueError("no data")


def test_fails_in_call(benchmark):
    benchmark(lambda: 1 / 0)


def test_fails_after(benchmark):
    assert benchmark(int) == 1, "the answer is not one"


def test_twice(benchmark):
    benchmark(int)
    benchmark(int)


@pytest.fixture
def fragile():
    yield
    raise OSError("cannot clean up")


def test_fails_at_teardown(benchmark, fragile):
    benchmark(int)


class TestCase(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def keep(self, benchmark):
        self.benchmark = benchmark

    def setUp(self):
        self.numbers = range(100)

    def test_unit(self):
        assert self.benchmark(sum, self.numbers) == 4950


@pytest.mark.benchmark
class TestMarkedCase(unittest.TestCase):
    def test_marked(self):
        sum(range(100))

    @unittest.skip("no such case")
    def test_skipped_case(self):
        raise AssertionError


@pytest.mark.benchmark
async def test_coroutine():
    """No plugin here runs it: what could be timed is that it was made."""
