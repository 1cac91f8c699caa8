import nothing_of_that_name  # noqa: F401


def test_unreachable(benchmark):
    benchmark(int)
