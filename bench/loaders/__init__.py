"""The worker's half of a source: one file per kind, standard library only (and what the kind's own tool is).

A loader has two functions:

    discover(places, skip, announce) -> {"benchmarks": [...], "path": [...], "problems": [...]}
    load(source, device, params) -> bench.api.Work

`bench.sources` holds the session's half, which may use the rest of bench.
"""
