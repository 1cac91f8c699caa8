"""The worker's half of a source: one file per kind, standard library only (and what the kind's own tool is).

A loader has the functions

    discover(places, skip, announce, patterns) -> {"benchmarks": [...], "path": [...], "problems": [...]}
    load(source, device, params) -> bench.api.Work

and, where its suites are modules that are imported, what all variants of one share:

    import_suite(source, suite) -> None

A suite that brings its own driver (pytest) has `drive` in place of `load`:

    drive(source, device, params, hold) -> None

It runs the suite's code up to the callable and calls `hold(work)` there, once. `hold` answers the
session until it closes and returns seconds per call; then the driver goes on to its end. What it
raises before `hold` is a failure of the set-up, what it raises after is one of the phase `close`.

`bench.sources` holds the session's half, which may use the rest of bench.
"""
