"""Options and wiring that several verbs share."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from bench.config import Config
    from bench.model import ArmResult, Estimate, Measurement, Number, Run
    from bench.ports import Store

F = TypeVar("F", bound=Callable[..., Any])

database_option = click.option(
    "--database", metavar="URL", help="SQLAlchemy URL or path of a SQLite file (default: .bench/bench.db)."
)
suites_option = click.option(
    "--suites", multiple=True, metavar="PLACE", help="Folder or importable package of suites; may be repeated."
)
python_option = click.option(
    "--python",
    metavar="PATH",
    help="Interpreter to measure with: a path, a virtual environment or a command (default: the one that runs bench).",
)
profile_option = click.option("--profile", type=click.Choice(["quick", "full"]), help="How much to run.")


def config_of(**flags: Any) -> Config:
    """The configuration under the flags given."""
    from bench.config import load_config

    return load_config(flags)


def estimates(result: ArmResult) -> Mapping[str, Estimate]:
    """What the store keeps beside raw samples, so that lists need no samples."""
    from bench.compare import estimate

    return {m.metric.name: estimate(m) for m in result.measurements}


def quartiles(result: ArmResult, measurement: Measurement) -> tuple[tuple[Number, ...], ...] | None:
    """What retention leaves of a measurement: what its estimate is derived from. Null: tails need all samples."""
    from bench.stats.location import lower_quartile
    from bench.tails import single_calls

    if measurement is single_calls(result):
        return None
    return tuple((lower_quartile(samples),) if samples else () for samples in measurement.launches)


@contextmanager
def opened(config: Config, *, create: bool = True) -> Iterator[Store]:
    """The store of the configuration, with runs that were killed brought in first."""
    from db.store import open_store

    store = open_store(config.database, create=create, summarise=estimates, branches=config.branches)
    try:
        _recover(config, store)
        yield store
    finally:
        store.close()


def _recover(config: Config, store: Store) -> None:
    from bench.errors import BenchError
    from bench.spool import recover

    for folder, run in recover(config.state):
        if run is not None:
            try:
                store.add(run)
            except BenchError as error:
                note(f"run {run.key[:8]} in {folder} could not be stored and stays there: {error}")
                continue
            note(f"recovered run {run.key[:8]}, which was killed, as interrupted")
        shutil.rmtree(folder, ignore_errors=True)


def load_run(store: Store, ref: str) -> Run:
    """A stored run, or a file that `bench export` wrote."""
    path = Path(ref)
    if path.suffix == ".json" or path.is_file():
        from bench.errors import WireError
        from bench.wire import decode_run

        try:
            return decode_run(path.read_bytes(), ref)
        except OSError as error:
            raise WireError(f"{ref} cannot be read: {error.strerror}.") from None
    return store.get(store.find(ref))


def trust(store: Store, fingerprint: str) -> str:
    """What is known of the gate's own errors on this machine."""
    from bench.selftest import SOURCE, false_alarm_sentence, false_alarms

    infos = [i for i in store.runs(limit=1000) if i.source == SOURCE and i.machine_fingerprint == fingerprint]
    return false_alarm_sentence(false_alarms(store.get(info.key) for info in infos[:20]))


def note(text: str) -> None:
    """One line for a person, beside the result."""
    click.echo(f"bench: {text}", err=True)


def write(text: str, file: str | None) -> None:
    """To a file, or to standard output for `-` and for none. Raises UsageError."""
    if file in (None, "-"):
        click.echo(text, nl=not text.endswith("\n"))
        return
    from bench.errors import UsageError

    assert file is not None
    try:
        Path(file).write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from None


def width() -> int | None:
    """Columns of the terminal; null when the output is not one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
