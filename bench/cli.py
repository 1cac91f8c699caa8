"""Finds the verbs; turns a BenchError into one message and an exit code.

Only click and the small command modules are imported here, so that `bench --help` answers at once.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import Any

import click

from bench import __version__, commands
from bench.errors import BenchError, Exit

WORKFLOW = ("list", "run", "show", "compare", "bisect", "profile", "import", "export", "db", "doctor", "dashboard")
"""Verbs in the order of an average day; others follow by name."""


class Verbs(click.Group):
    """Every module of bench.commands is a verb; dropping in a file adds one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of use."""
        names = {m.name for m in pkgutil.iter_modules(commands.__path__) if not m.name.startswith("_")}
        return [n for n in WORKFLOW if n in names] + sorted(names - set(WORKFLOW))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one verb; a broken one fails loudly."""
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"bench.commands.{name}").command
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="bench")
def bench() -> None:
    """Measure what makes AI inference faster, and notice when it no longer does.

    Exit codes: 0 nothing wrong, 1 internal error, 2 usage or configuration, 3 regression,
    4 inconclusive (with --strict), 5 incomparable, 6 missing or failed benchmarks,
    7 environment or runner failure, 8 a trade needs a decision (with --trades=fail).
    """


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the installed command."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one verb and return its exit code."""
    try:
        result: Any = bench.main(args=arguments, prog_name="bench", standalone_mode=False)
    except BenchError as error:
        _say(str(error))
        return int(error.exit_code)
    except click.UsageError as error:
        error.show()
        return int(Exit.USAGE)
    except click.ClickException as error:
        _say(error.format_message())
        return int(Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return int(Exit.FAILED)
    except BrokenPipeError:  # the reader of our output went away, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.OK)
    except Exception as error:
        if os.environ.get("BENCH_DEBUG"):
            raise
        _say(f"internal error: {type(error).__name__}: {error} (BENCH_DEBUG=1 shows where; please report it)")
        return int(Exit.INTERNAL)
    return int(result) if isinstance(result, int) else 0


def _say(sentence: str) -> None:
    click.echo(f"bench: {sentence}", err=True)
