"""Where benchmarks come from: one file per kind. Each is a bench.ports.Source."""
