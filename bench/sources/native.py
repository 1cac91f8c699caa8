"""Benchmarks declared with `bench.api.benchmark`, in folders or packages."""

from __future__ import annotations

from bench.sources.discovery import WorkerSource


class NativeSource(WorkerSource):
    """Modules of suites, in folders or importable packages."""

    name = "native"
    loader = "bench.loaders.native"
