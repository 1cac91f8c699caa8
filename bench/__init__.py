"""Continuous performance-regression benchmarks for AI inference."""

__version__ = "0.1.0"
