"""The other way round: our suites seen by other tools. One file per tool, two lines in its folder of benchmarks.

    from bench.bridges.asv import expose            # asv run, asv publish
    expose("../suites", into=globals())

    from bench.bridges.pytest import expose         # pytest --benchmark-only
    expose("../suites", into=globals())

The tool then keeps clock, processes and history; what a suite declares keeps its meaning: axes, the
set-up that is never timed, what is skipped and what is a wrong answer. What only our harness does is
missing there: variants side by side in interleaved rounds, and intervals over launches.
"""
