"""Small real data, shipped and checked by digest (README.md)."""
