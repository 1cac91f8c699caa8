"""A side of a comparison as a person types it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import HostError, UsageError
from bench.model import HARNESS_VARIABLES
from bench.targets.revision import WORKING_TREE, Repository

FORMS = (
    "a git revision (main, HEAD~3, `.` for the working tree), a requirement (onnxruntime==1.31.1), "
    "a setting (env:NAME=VALUE, device:NAME, python:PATH) or a stored run (latest, latest@main, run:KEY)"
)

REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[A-Za-z0-9._,-]*\])?"
    r"(?:===?|~=|!=|<=|>=|<|>)[A-Za-z0-9.*+!_-]+(?:,(?:===?|~=|!=|<=|>=|<|>)[A-Za-z0-9.*+!_-]+)*"
)
"""PEP 508 without markers and addresses, which a shell's word can hardly hold."""

NEXT_REQUIREMENT = re.compile(r",(?=[A-Za-z0-9])")

LATEST = re.compile(r"latest(@[^\s~]+)?(~\d+)?")
KEY = re.compile(r"[0-9a-f]{4,32}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSpec:
    """What a side asks for; what is null or empty is as bench's own interpreter has it.

    revision: what git resolves, or `.`; run: a stored run, which nothing else goes with.
    """

    text: str
    run: str | None = None
    revision: str | None = None
    requirements: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    device: str | None = None
    python: str | None = None


def parse_side(text: str, *, project: Path) -> SideSpec:
    """Read words separated by spaces, each of one form; together they describe one side.

    A word is, by the first of these that fits: a prefix (`run:`, `rev:`, `env:`, `device:`,
    `python:`), `.`, `latest…`, a requirement or the path of a wheel, a git revision of `project`,
    a beginning of a run's key (at least 4 hexadecimal digits). So `rev:latest` is a branch of that
    name and `run:beef` a run whose key begins as a commit does. Raises UsageError.
    """
    try:
        words = [part for word in shlex.split(text) for part in _split(word)]
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be read ({str(error).lower()}); a side is {FORMS}.") from None
    if not words:
        raise UsageError(f"a side is empty; give {FORMS}.")
    parts = [_read(word, project) for word in words]
    runs = [part.run for part in parts if part.run is not None]
    if runs and len(parts) > 1:
        raise UsageError(f"{text!r} joins the stored run {runs[0]} with something else; a stored run stands alone.")
    variables: dict[str, str] = {}
    for part in parts:
        if twice := set(variables) & set(part.variables):
            raise UsageError(f"{text!r} sets {min(twice)} twice; keep one.")
        variables |= part.variables
    return SideSpec(
        text=" ".join(text.split()), run=runs[0] if runs else None, variables=variables,
        revision=_only(text, "revisions", [p.revision for p in parts]),
        requirements=tuple(r for part in parts for r in part.requirements),
        device=_only(text, "devices", [p.device for p in parts]),
        python=_only(text, "interpreters", [p.python for p in parts]),
    )  # fmt: skip


def requirement_name(requirement: str) -> str:
    """The distribution a requirement, or a wheel's path, names: lower case, dashes (PEP 503)."""
    if requirement.endswith(".whl"):
        name = Path(requirement).name.partition("-")[0]
    else:
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def _split(word: str) -> list[str]:
    """`a==1,b==2` is two requirements, `a>=1,<2` is one."""
    pieces = NEXT_REQUIREMENT.split(word)
    return pieces if len(pieces) > 1 and all(REQUIREMENT.fullmatch(piece) for piece in pieces) else [word]


def _only(text: str, what: str, values: list[str | None]) -> str | None:
    given = [value for value in values if value is not None]
    if len(given) > 1:
        raise UsageError(f"{text!r} names two {what}, {given[0]} and {given[1]}; keep one.")
    return given[0] if given else None


def _read(word: str, project: Path) -> SideSpec:
    prefix, colon, rest = word.partition(":")
    if colon and prefix in ("run", "rev", "env", "device", "python"):
        return _read_prefixed(word, prefix, rest, project)
    if word == WORKING_TREE:
        return SideSpec(text=word, revision=word)
    if LATEST.fullmatch(word):
        return SideSpec(text=word, run=word)
    if REQUIREMENT.fullmatch(word):
        return SideSpec(text=word, requirements=(word,))
    if word.endswith(".whl"):
        wheel = Path(word).expanduser().resolve()
        if not wheel.is_file():
            raise UsageError(f"the wheel {word} is not there; check its path.")
        return SideSpec(text=word, requirements=(str(wheel),))
    trouble = ""
    try:
        if Repository.open(project).find(word) is not None:
            return SideSpec(text=word, revision=word)
    except (UsageError, HostError) as error:
        trouble = f" (no revision could be looked up: {str(error).rstrip('.')})"
    if KEY.fullmatch(word):
        return SideSpec(text=word, run=word)
    raise UsageError(f"{word!r} is nothing that can be measured here: give {FORMS}{trouble}.")


def _read_prefixed(word: str, prefix: str, rest: str, project: Path) -> SideSpec:
    if prefix == "env":
        name, equals, value = rest.partition("=")
        if not equals or not VARIABLE.fullmatch(name):
            raise UsageError(f"{word!r} sets no variable; write env:NAME=VALUE.")
        if name in HARNESS_VARIABLES:
            raise UsageError(f"{word!r}: bench itself sets {name} for every process; choose another variable.")
        return SideSpec(text=word, variables={name: value})
    if not rest:
        raise UsageError(f"{word!r} ends after the colon; give {FORMS}.")
    if prefix == "device":
        if not DEVICE.fullmatch(rest):
            raise UsageError(f"{word!r} names no device; write device:cpu or device:cuda.")
        return SideSpec(text=word, device=rest)
    if prefix == "python":
        return SideSpec(text=word, python=rest)
    if prefix == "run":
        if not (LATEST.fullmatch(rest) or KEY.fullmatch(rest)):
            raise UsageError(f"{word!r} names no run; write run:KEY (4 to 32 hexadecimal digits) or latest.")
        return SideSpec(text=word, run=rest)
    if rest != WORKING_TREE and Repository.open(project).find(rest) is None:
        raise UsageError(f"{rest} is no revision of {project}; `git log --oneline` lists them, or fetch it.")
    return SideSpec(text=word, revision=rest)
