"""Tests that use the `benchmark` fixture of pytest-benchmark or pytest-codspeed."""

from __future__ import annotations

from bench.sources.discovery import WorkerSource


class PytestSource(WorkerSource):
    """Files or folders of tests, unmodified. See bench.loaders.pytest_benchmark for what becomes of them."""

    name = "pytest"
    loader = "bench.loaders.pytest_benchmark"
