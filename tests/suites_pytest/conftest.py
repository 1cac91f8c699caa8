import pytest


def pytest_benchmark_update_json(config, benchmarks, output_json):
    """A hook of pytest-benchmark, which must not be an unknown one."""


@pytest.fixture(scope="session")
def numbers():
    made = list(range(100))
    yield made
    assert made == list(range(100)), "a benchmark changed the session's data"


@pytest.fixture
def quick(benchmark):
    """A fixture around the fixture, as suites write them."""
    return lambda function: benchmark.pedantic(function, rounds=5, iterations=3)
