"""Benchmarks of inference optimizations: one module each, found by `bench list`."""
