"""The documentation says what the code does: nothing missing, nothing stale, examples run."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from enum import Enum
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

import bench.commands
import bench.reports
from bench import compare, model
from bench.cli import bench as cli
from bench.cli import run as run_cli
from bench.config import SETTINGS, load_config
from bench.errors import Exit
from bench.experiment import run_experiments
from bench.model import Target
from bench.plan import plan
from bench.reports.json import JsonReport
from bench.sources.native import NativeSource
from bench.testing import SilentProgress, make_run
from db.store import open_store

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
REFERENCE = ROOT / "docs" / "reference.md"

NO_DATA = {"run", "export", "dashboard"}
"""Verbs without a `--json` switch: `run` has `--json FILE`, `export` has `--format`, `dashboard` serves pages."""


def text_of(page):
    return page.read_text(encoding="utf-8")


def section(page, title):
    """Text under the heading of that title, up to the next heading of the same or a higher level; empty when absent."""
    match = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,6}} |\Z)", text_of(page), flags=re.M | re.S)
    return match[2] if match else ""


def rows(text):
    """First cell → whole row, of every table row."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def named(text):
    """Everything in back quotes."""
    return set(re.findall(r"`([^`]+)`", text))


# Verbs and options


def verbs(command=cli, name="bench"):
    """(full name, command) of every verb that does something."""
    context = click.Context(command)
    for child in command.list_commands(context):
        found = command.get_command(context, child)
        if isinstance(found, click.Group):
            yield from verbs(found, f"{name} {child}")
        else:
            yield f"{name} {child}", found


VERBS = dict(verbs())


def options(command):
    return [p for p in command.params if isinstance(p, click.Option)]


def spellings(option):
    return [*option.opts, *option.secondary_opts]


def default_of(option):
    """The default as the reference writes it; empty where the code has none to show."""
    plain = isinstance(option.default, str | int) and not isinstance(option.default, bool | Enum)
    return f"`{option.default}`" if plain else ""


def row_for(option):
    """The row to paste."""
    names = ", ".join(f"`{s}`" for s in spellings(option))
    return f"| {names} | {default_of(option) or ('off' if option.is_flag else '…')} | {option.help} |"


def undocumented(name, command):
    """What docs/reference.md lacks about one verb, as text to paste."""
    text = section(REFERENCE, name)
    if not text:
        body = "\n".join(row_for(o) for o in options(command))
        return [f"### {name}\n\n{command.help}\n\n| option | default | meaning |\n| --- | --- | --- |\n{body}"]
    table = rows(text)
    missing = []
    for option in options(command):
        row = next((r for first, r in table.items() if option.opts[0] in re.split(r"[`\s,]", first)), None)
        if row is None:
            missing.append(row_for(option))
            continue
        words = set(re.split(r"[`\s,]", row))
        wanted = spellings(option)
        if isinstance(option.type, click.Choice):
            wanted += list(option.type.choices)
        if default_of(option):
            wanted.append(default_of(option).strip("`"))
        missing += [f"in the row of {option.opts[0]}: {word}" for word in wanted if word not in words]
    return missing


@pytest.mark.parametrize("name", VERBS)
def test_the_reference_has_every_option_of(name):
    missing = undocumented(name, VERBS[name])
    assert not missing, f"docs/reference.md, section {name}, lacks:\n\n" + "\n".join(missing)


@pytest.mark.parametrize("name", VERBS)
def test_the_reference_invents_no_option_of(name):
    known = {s for option in options(VERBS[name]) for s in spellings(option)}
    first_cells = " ".join(rows(section(REFERENCE, name)))
    assert set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", first_cells)) <= known


def test_the_reference_invents_no_verb():
    sections = re.findall(r"^### (bench .+)$", text_of(REFERENCE), flags=re.M)
    assert sorted(sections) == sorted(set(sections))
    assert set(sections) <= set(VERBS), "sections of verbs that are not there"


def test_the_readme_has_every_verb_in_its_table_and_no_other():
    written = set(re.findall(r"`(bench \w+)`", " ".join(rows(section(ROOT / "README.md", "Verbs")))))
    there = {" ".join(name.split()[:2]) for name in VERBS}
    assert written == there, f"README.md, Verbs: missing {there - written}, stale {written - there}"


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_and_option_explains_itself(name):
    command = VERBS[name]
    assert command.help, f"{name} has no docstring"
    mute = [o.opts[0] for o in options(command) if not o.help]
    assert not mute, f"{name}: no help for {mute}"


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_prints_data_has_json(name):
    if name.split()[1] in NO_DATA:
        return
    switches = [o for o in options(VERBS[name]) if "--json" in o.opts]
    assert switches, f"{name} has no --json; if it prints no data, add it to NO_DATA here"


def test_the_commands_that_pages_show_are_there():
    """`bench compare latest~1 latest` in a page names a verb that exists."""
    wrong = []
    names = {name.split()[1] for name in VERBS}
    for page in PAGES:
        for block in re.findall(r"^(?: {4}.*\n)+", text_of(page), flags=re.M):
            for word in re.findall(r"(?:^| )bench ([a-z]\w*)", block, flags=re.M):
                if word not in names:
                    wrong.append(f"{page.name}: bench {word}")
    assert not wrong


# Exit codes, settings, variables


def test_the_reference_has_every_exit_code():
    written = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1] for line in
               rows(section(REFERENCE, "Exit codes")).values()}  # fmt: skip
    del written["code"]
    assert written == {str(int(code)): code.name for code in Exit}


def test_the_reference_has_every_setting_with_variable_and_default(tmp_path):
    table = rows(section(REFERENCE, "Settings"))
    assert {"key", *(f"`{name}`" for name in SETTINGS)} == set(table)
    defaults = load_config(cwd=tmp_path, environ={})
    for name in SETTINGS:
        value = getattr(defaults, name)
        if isinstance(value, tuple):
            text = " ".join(value) or "none"
        else:
            text = str(value).removeprefix("sqlite:///").removeprefix(f"{tmp_path.resolve()}/")
            text = text.replace(str(Path.home()), "~")
        _, variable, default, _ = table[f"`{name}`"].removeprefix("| ").split(" | ", 3)
        assert (variable, default.strip("`")) == (f"`BENCH_{name.upper()}`", text)


@cache
def repository():
    """Path → text of every text file of the repository, also of those that are not committed yet."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not in a git repository, so nobody knows which files belong to it")
    found = {}
    for name in sorted(set(filter(None, done.stdout.split("\0")))):
        try:
            found[name] = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # binary, or being renamed by someone
    return found


def test_the_reference_has_every_variable_of_the_source_tree():
    used = {}
    for name, text in repository().items():
        if name.endswith((".py", ".sh", ".toml", ".yml")) or name.startswith(".ci/"):
            for variable in re.findall(r"\bBENCH_[A-Z][A-Z_]*[A-Z]\b", text):
                used.setdefault(variable, name)
    written = set(re.findall(r"\bBENCH_[A-Z_]*[A-Z]\b", text_of(REFERENCE)))
    missing = {v: where for v, where in used.items() if v not in written}
    assert not missing, f"docs/reference.md lacks variables: {missing}"
    stale = written - set(used) - {f"BENCH_{name.upper()}" for name in SETTINGS}
    assert not stale, f"docs/reference.md has variables that nothing reads: {stale}"


# Words and formats


def classes(module):
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def test_the_glossary_has_every_class_of_the_model_and_no_other():
    written = {first.strip("`") for first in rows(text_of(ROOT / "docs" / "glossary.md")) if first.startswith("`")}
    there = set(classes(model))
    assert written == there, f"docs/glossary.md: missing {there - written}, stale {written - there}"


@pytest.mark.parametrize("name", ["Better", "Kind", "Summary", "FailureKind", "RunStatus", "Verdict"])
def test_the_glossary_names_every_member_of(name):
    row = rows(text_of(ROOT / "docs" / "glossary.md"))[f"`{name}`"]
    missing = [member.value for member in classes(model)[name] if member.value not in re.findall(r"\w+", row)]
    assert not missing, f"docs/glossary.md, {name}, lacks {missing}"


def test_the_reference_has_every_field_of_a_run():
    table = rows(section(REFERENCE, "Run: `bench-run`"))
    derived = {"Estimate", "Comparison"}  # not stored
    wrong = []
    for name, kind in classes(model).items():
        if not dataclasses.is_dataclass(kind) or name in derived:
            continue
        fields = [f.name for f in dataclasses.fields(kind)]
        written = named(table.get(f"`{name}`", "")) - {name}
        wrong += [f"{name}.{f} is missing" for f in fields if f not in written]
        wrong += [f"{name}.{f} is stale" for f in written if f not in fields]
    assert not wrong, "docs/reference.md, Run: " + "; ".join(wrong)


def keys_of(value, *open_maps):
    """All keys of a JSON document, less those under the mappings named, whose keys are names."""
    if isinstance(value, list):
        return set().union(*(keys_of(v, *open_maps) for v in value))
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, inner in value.items():
        found.add(key)
        if key in open_maps and isinstance(inner, dict):
            found |= keys_of(list(inner.values()), *open_maps)
        else:
            found |= keys_of(inner, *open_maps)
    return found


def without_model(document):
    """The document less the objects that the section on runs describes."""
    for name in ("machine", "environment"):
        document["run"][name] = {"fingerprint": document["run"][name]["fingerprint"]}
    document["run"]["conditions"] = None
    return document


def test_the_reference_has_every_field_of_the_report():
    document = without_model(json.loads(JsonReport().run(make_run())))
    missing = keys_of(document, "metrics", "params", "notes") - named(section(REFERENCE, "Report: `bench-report`"))
    missing -= {"engine", "provider"}  # an axis and a note of the made-up run
    assert not missing, f"docs/reference.md, Report, lacks {missing}"


def test_the_reference_has_every_field_of_the_comparison():
    base, head = make_run(seed=1), make_run(seed=2)
    document = json.loads(JsonReport().comparison(compare.compare_runs(base, head), exit_code=0))
    metrics = {name for variant in document["variants"] for name in variant["metrics"]}
    text = section(REFERENCE, "Comparison: `bench-report`") + section(REFERENCE, "Report: `bench-report`")
    missing = keys_of(document, "metrics") - metrics - named(text)
    assert not missing, f"docs/reference.md, Comparison, lacks {missing}"


# Links


def anchor(title):
    """The fragment that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_relative_link_leads_somewhere(page):
    prose = re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        place, _, fragment = target.partition("#")
        if urlsplit(target).scheme:
            continue
        file = (page.parent / place).resolve() if place else page
        titles = re.findall(r"^#+ (.+)$", text_of(file), flags=re.M) if fragment and file.is_file() else []
        if not file.exists() or (fragment and fragment not in map(anchor, titles)):
            broken.append(target)
    assert not broken, f"{page.name}: {broken}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_file_and_module_that_a_page_names_is_there(page):
    """`bench/api.py`, `bench.plan.POLICIES`, `runners.devices.cpu:Cpu` in back quotes exist."""
    prose = re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    missing = []
    for name in named(prose):
        if re.fullmatch(r"(bench|db|runners|suites|dashboard|tests|docs)/[\w./-]+", name):
            if not (ROOT / name).exists():
                missing.append(name)
        elif re.fullmatch(r"(bench|db|runners)(\.\w+)+(:\w+)?", name) and not resolves(name.replace(":", ".")):
            missing.append(name)
    assert not missing, f"{page.name} names what is not there: {missing}"


def resolves(name):
    """Whether a dotted name is a module, or an attribute of a module or class."""
    try:
        import_path(name)
    except (ImportError, AttributeError):
        return bool(re.search(r"\.(db|json|toml)$", name))  # a file's name
    return True


def import_path(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = __import__(".".join(parts[:cut]), fromlist=["_"])
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part) if hasattr(found, part) else found.__dataclass_fields__[part]
        return found
    raise ImportError(name)


# Examples


def examples(page):
    """File → code of every `python` fence whose first line is a comment with the file's path."""
    found = {}
    for code in re.findall(r"^```python\n(.*?)^```", text_of(page), flags=re.M | re.S):
        first = code.split("\n", 1)[0]
        assert re.fullmatch(r"# [\w/]+\.py", first), f"{page.name}: a python fence begins with `# path.py`, not {first}"
        found[first.removeprefix("# ")] = code
    return found


EXAMPLES = {path: code for page in PAGES for path, code in examples(page).items()}
BENCHMARKS = [path for path, code in EXAMPLES.items() if "@benchmark" in code]


def write_examples(folder, *paths):
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(EXAMPLES[path], encoding="utf-8")


def measured(source, *, device="bench.testing:FakeDevice", path=()):
    """Results of one launch of everything that the source finds."""
    found = source.discover(Target())
    assert not found.problems
    experiments = plan(found.benchmarks, (), profile="quick", target=Target(), seed=1, launches=1)
    results, _ = run_experiments(
        experiments, device=device, path=[*source.path, *path], progress=SilentProgress(),
        finished=lambda index, result: None,
    )  # fmt: skip
    return [arm for result in results for arm in result.results]


@pytest.mark.parametrize("path", BENCHMARKS)
def test_an_example_of_a_benchmark_runs(path, tmp_path):
    write_examples(tmp_path, path)
    arms = measured(NativeSource([str((tmp_path / path).parent)]))
    assert arms
    for arm in arms:
        assert arm.failure is None, arm.failure
        assert arm.measurement("time")


def test_the_example_of_a_device_measures(tmp_path):
    quick = next(path for path in BENCHMARKS if path in examples(ROOT / "docs" / "quickstart.md"))
    write_examples(tmp_path, quick, "runners/devices/background.py")
    source = NativeSource([str((tmp_path / quick).parent)])
    device, folder = "background:Background", str(tmp_path / "runners" / "devices")
    assert all(arm.failure is None for arm in measured(source, device=device, path=[folder]))


def test_the_examples_of_a_report_and_a_verb_print(tmp_path, monkeypatch, capsys):
    """Dropping in the two files is enough: the verb is listed, and prints the report."""
    write_examples(tmp_path, "bench/reports/fastest.py", "bench/commands/fastest.py")
    for package, folder in ((bench.reports, "reports"), (bench.commands, "commands")):
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / "bench" / folder)])
    database = tmp_path / "bench.db"
    with open_store(f"sqlite:///{database}") as store:
        store.add(make_run(speedups=(1.0, 2.0, 0.8)))
    try:
        assert run_cli(["fastest", "--database", str(database)]) == Exit.OK
        assert "fastest" in cli.list_commands(click.Context(cli))
    finally:
        for name in ("bench.reports.fastest", "bench.commands.fastest"):
            sys.modules.pop(name, None)
    assert re.match(r"demo\.net: e1, 1\.\d\d ms|demo\.net: e1, \d+ µs", capsys.readouterr().out)


def test_the_example_of_a_source_finds_and_measures(tmp_path, monkeypatch):
    write_examples(tmp_path, "bench/loaders/plain.py", "bench/sources/plain.py")
    loader = tmp_path / "bench" / "loaders" / "plain.py"
    session_half = EXAMPLES["bench/sources/plain.py"].replace("bench.loaders.plain", "plain")
    loader.write_text(loader.read_text().replace("bench.loaders.plain", "plain"))  # it is not inside bench here
    (tmp_path / "sums.py").write_text("def bench_sum():\n    return sum(range(1000))\n\n\ndef helper():\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", str(loader.parent))
    names = {}
    exec(compile(session_half, "plain.py", "exec"), names)
    source = names["PlainSource"]([str(tmp_path / "sums.py")])
    (arm,) = measured(source)
    assert arm.failure is None, arm.failure
    assert arm.arm.variant.name == "sums.bench_sum"


def test_the_example_of_a_page_shows(tmp_path, monkeypatch):
    from streamlit.testing.v1 import AppTest

    write_examples(tmp_path, "dashboard/views/commits.py")
    database = f"sqlite:///{tmp_path / 'bench.db'}"
    with open_store(database) as store:
        run = make_run()
        store.add(run)
    monkeypatch.setenv("BENCH_DATABASE", database)
    shown = AppTest.from_file(str(tmp_path / "dashboard" / "views" / "commits.py"), default_timeout=60).run()
    assert not shown.exception, shown.exception
    assert f"{run.key[:8]}: no commit" in shown.get("html")[0].proto.body


def test_every_example_is_run_by_a_test():
    """A python fence that no test above runs would rot."""
    ran = {*BENCHMARKS, "runners/devices/background.py", "bench/reports/fastest.py", "bench/commands/fastest.py",
           "bench/loaders/plain.py", "bench/sources/plain.py", "dashboard/views/commits.py"}  # fmt: skip
    assert set(EXAMPLES) == ran


def test_the_quickstart_example_is_one():
    assert any(path in examples(ROOT / "docs" / "quickstart.md") for path in BENCHMARKS)


# Words of the place where this was written


def forbidden():
    """What no file may hold: paths of one workplace, and hosts from which packages come.

    Composed, so that this file does not hold them; to them come the hosts that this machine's
    installers are told to use.
    """
    hosts = {
        ".".join(parts)
        for parts in (
            ("pypi", "org"), ("pythonhosted", "org"), ("download", "pytorch", "org"), ("npmjs", "org"),
            ("anaconda", "org"), ("huggingface", "co"), ("proxy", "golang", "org"), ("index", "crates", "io"),
        )
    }  # fmt: skip
    for name, value in os.environ.items():
        if re.fullmatch(r"(PIP|UV)_\w*(INDEX|LINKS)\w*", name):
            hosts |= {h for h in (urlsplit(word).hostname for word in value.split()) if h and re.search(r"[a-z]\.", h)}
    paths = "|".join(re.escape("/" + "/".join(parts)) for parts in (("work",), ("opt", "wheels")))
    return re.compile(rf"(?<![\w.])(?:{paths})(?![\w.-])|" + "|".join(map(re.escape, sorted(hosts))))


def test_no_file_names_the_place_where_it_was_written():
    pattern = forbidden()
    found = [f"{name}: {match[0]}" for name, text in repository().items() for match in pattern.finditer(text)]
    assert not found


def test_the_search_for_such_words_finds_them(monkeypatch):
    """The pattern would see what it looks for, and takes ordinary words for what they are."""
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://packages.example.test/simple")
    pattern = forbidden()
    for text in ("cd /" + "work/main", "/opt/" + "wheels", "see https://py" + "pi.org/x", "packages.example.test"):
        assert pattern.search(text), text
    for text in ("docs/work", "/workers", "/home/runner/work/x", "/opt/wheelsmith"):
        assert not pattern.search(text), text
