"""The canary beside every run: fixed work whose series say whether the machine itself moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.model import Experiment, Policy

SUITE = "canary"


def canary(profile: str, *, launches: int | None, seed: int) -> tuple[list[Experiment], tuple[str, ...]]:
    """Its experiment, and what a worker must be able to import for it."""
    from pathlib import Path

    import runners.reference
    from bench.model import Target
    from bench.plan import plan
    from bench.sources.native import NativeSource

    source = NativeSource([str(Path(runners.reference.__file__).parent)])
    found = source.discover(Target())
    experiments = plan(found.benchmarks, [SUITE], profile=profile, target=Target(), seed=seed, launches=launches)
    return [_short(experiment) for experiment in experiments], source.path


def _short(experiment: Experiment) -> Experiment:
    """A fifth of the usual samples: the launches decide, and every run pays for this."""
    from dataclasses import replace

    policy: Policy = experiment.policy
    short = replace(
        policy, rounds=2, side_ns=policy.side_ns // 5, warm_up_ns=policy.warm_up_ns // 3,
        warm_up_cap_ns=policy.warm_up_cap_ns // 10,
    )  # fmt: skip
    return replace(experiment, policy=short)
