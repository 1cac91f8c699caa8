"""Where the benchmarks of `run` and `compare` come from: our own suites, or a foreign tool's, unmodified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bench.commands._shared import note

if TYPE_CHECKING:
    from bench.config import Config
    from bench.model import Revision, Target
    from bench.ports import Discovery, Suites

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option("--asv", metavar="CONF", help="Benchmarks of an asv project: its asv.conf.json."),
    click.option("--pytest", "tests", multiple=True, metavar="PATH", help="Tests with the `benchmark` fixture."),
    click.option(
        "--command",
        "commands",
        multiple=True,
        metavar="TEXT",
        help="A command line: whole-process time and memory; of several the first is the baseline.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Most that each phase of a benchmark may take (default: what it declares, 120 for a command).",
    ),
)


def source_options(function: F) -> F:
    """Add --asv, --pytest, --command and --timeout."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def source_of(config: Config, chosen: Mapping[str, Any], revision: Revision | None = None) -> Suites:
    """The source that the options name; with `revision` its files are those of that commit.

    Raises UsageError for two sources at once.
    """
    source = _source_of(config, chosen, revision)
    timeout_s: float | None = chosen.get("timeout")
    return source if timeout_s is None else _WithTimeout(source, timeout_s)


class _WithTimeout:
    """A source whose benchmarks may take as long as the person says."""

    def __init__(self, source: Suites, timeout_s: float) -> None:
        self.name = source.name
        self.path: tuple[str, ...] = ()
        self._source = source
        self._timeout_s = timeout_s

    def discover(self, target: Target, patterns: Sequence[str] = ()) -> Discovery:
        """See bench.ports.Source."""
        from dataclasses import replace

        found = self._source.discover(target, patterns)
        self.path = self._source.path
        return replace(found, benchmarks=tuple(replace(b, timeout_s=self._timeout_s) for b in found.benchmarks))


def _source_of(config: Config, chosen: Mapping[str, Any], revision: Revision | None) -> Suites:
    from bench.errors import UsageError

    given = [name for name in ("asv", "tests", "commands") if chosen.get(name)]
    if len(given) > 1:
        raise UsageError("--asv, --pytest and --command name one source of benchmarks; give only one of them.")
    where = _Places(config, revision)
    if chosen.get("asv"):
        from bench.sources.asv import AsvSource

        return AsvSource(where.of(chosen["asv"]))
    if chosen.get("tests"):
        from bench.sources.pytest_benchmark import PytestSource

        return PytestSource([str(where.of(place)) for place in chosen["tests"]])
    if chosen.get("commands"):
        from bench.sources.command import CommandSource

        return CommandSource(chosen["commands"])
    from bench.sources.native import NativeSource

    return NativeSource([str(where.of(place)) if _is_path(config, place) else place for place in config.suites])


def runner_for(chosen: Mapping[str, Any]) -> list[str]:
    """What reads or runs the foreign tool's suite in a worker."""
    if chosen.get("asv"):
        return ["asv_runner>=0.2.1"]
    return ["pytest>=8.3"] if chosen.get("tests") else []


def requirements_for(chosen: Mapping[str, Any]) -> list[str]:
    """What both sides need beside the project: the foreign tool's runner, and what its configuration asks for."""
    found = runner_for(chosen)
    if chosen.get("asv") and Path(chosen["asv"]).exists():  # in a bare repository it is not
        from bench.sources.asv import requirements_of

        found += requirements_of(chosen["asv"])
    return found


def revision_named(config: Config, text: str, others: str) -> Revision:
    """The revision that --suite-from names. Raises UsageError that names the `others` it may be."""
    from bench.errors import UsageError
    from bench.targets.revision import Repository

    repository = Repository.open(config.root)
    commit = repository.find(text)
    if commit is None:
        raise UsageError(f"--suite-from {text}: no such revision; give {others} or a git revision.")
    return repository.describe(commit)


def target_of(config: Config, python: str | None, chosen: Mapping[str, Any], device: str | None = None) -> Target:
    """Where `run` and `list` look: the interpreter as it is, and beside it the foreign tool's runner if it lacks it.

    Raises UsageError for an interpreter that is not there or too old, HostError when nothing can be installed.
    """
    from bench.model import Target

    here = Target() if device is None else Target(device=device)
    if python is None:
        return here
    from dataclasses import replace

    from bench.targets import SideSpec, resolve

    spec = SideSpec(text=f"python:{python}", python=python)
    built = resolve(spec, project=config.root, cache=config.cache, requirements=runner_for(chosen), say=note)
    # The interpreter and what was put beside it annotate a run, in its environment; they name no series.
    return replace(built, label=here.label, requirements=(), device=here.device)


def discover(source: Suites, target: Target, selectors: Sequence[str]) -> Discovery:
    """What `selectors` name at `target`, without importing more of the suite than that takes.

    Where one of them names nothing, everything is looked at: the message must know what there is.
    """
    from bench.plan import parse

    note("looking for benchmarks")
    wanted = [parse(text) for text in selectors]
    found = source.discover(target, [selector.pattern for selector in wanted])
    if all(any(selector.matches(b) for b in found.benchmarks) for selector in wanted):
        return found
    return source.discover(target)


def _is_path(config: Config, place: str) -> bool:
    return "/" in place or (config.root / place).is_dir()


class _Places:
    """Paths of the project as they are in a commit."""

    def __init__(self, config: Config, revision: Revision | None) -> None:
        self._config = config
        self._revision = revision
        self._files: Path | None = None

    def of(self, place: str | Path) -> Path:
        """The same place in the commit; as it is for the working tree, and outside the project."""
        path = Path(place).expanduser()
        path = path if path.is_absolute() else Path.cwd() / path
        if self._revision is None or self._revision.dirty:
            return path
        from bench.targets.revision import Repository

        repository = Repository.open(self._config.root)
        if repository.bare:
            return self._checkout() / Path(place)
        top = repository.folder
        for _ in Path(repository.prefix).parts:
            top = top.parent
        inside = path.resolve()
        return self._checkout() / inside.relative_to(top) if inside.is_relative_to(top) else path

    def _checkout(self) -> Path:
        if self._files is None:
            from bench.targets.cache import Cache
            from bench.targets.revision import Repository

            assert self._revision is not None
            with Repository.open(self._config.root).snapshot(self._revision.commit) as snapshot:

                def build(folder: Path) -> dict[str, Any]:
                    snapshot.export(folder / "files")
                    return {}

                entry = Cache(self._config.cache).get({"kind": "suites", "tree": snapshot.tree}, build)
            self._files = entry.folder / "files"
        return self._files
