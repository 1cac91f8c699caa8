def test_inner(benchmark):
    benchmark(int)
