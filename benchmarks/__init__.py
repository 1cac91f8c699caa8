"""Harnesses that check or tune bench itself. Not shipped; run as `python -m benchmarks.<name>`."""
