"""The documentation says what the code does: nothing missing, nothing stale. Examples: test_docs_examples.py."""

import dataclasses
import importlib.util
import json
import os
import re
import shlex
import subprocess
from enum import Enum
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

from bench import compare, metrics, model, policy, profiles, suspects
from bench.claims.document import claims_of
from bench.claims.evidence import answers
from bench.claims.words import Finding
from bench.cli import bench as cli
from bench.commands.selftest import _document as selftest_document
from bench.config import SETTINGS, load_config
from bench.errors import Exit
from bench.metrics import TIME
from bench.model import Target
from bench.reports.bisection import bisection_json
from bench.reports.claims import claims_json
from bench.reports.json import JsonReport
from bench.reports.profile import profile_json
from bench.selftest import Trial, rates
from bench.sources.native import NativeSource
from bench.stats.sequential import LOOKS
from bench.targets import parse
from bench.targets.history import Change
from bench.testing import make_run

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


def commands_in(page):
    """Words of every `bench …` command line of a page, in indented blocks and in back quotes."""
    prose = re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    blocks = re.findall(r"^ {4}(.*)$", prose, flags=re.M)
    for line in [*blocks, *named(prose)]:
        match = re.match(r"(?:python3 dev\.py |\.venv/bin/)?bench( [^#;]+)", line)
        if match and not match[1].strip().startswith(("VERB", "ARGS")):
            yield shlex.split(match[1])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_commands_that_a_page_shows_are_there(page):
    """`bench compare latest~1 latest --json` names a verb that exists and options that it has."""
    wrong = []
    for words in commands_in(page):
        full = " ".join(["bench", *words])
        name = next((n for n in VERBS if f"{full} ".startswith(f"{n} ")), None)
        known = {s for option in options(VERBS[name]) for s in spellings(option)} if name else set()
        asked = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} - {
            "--help",
            "-h",
            "--version",
        }
        if (name is None and not is_group(words[0]) and not words[0].startswith("-")) or asked - known - EVERYWHERE:
            wrong.append(full)
    assert not wrong


EVERYWHERE = {"-h", "--help", "--version"}


def is_group(word):
    """Whether `bench word` leads to further verbs."""
    return any(name.startswith(f"bench {word} ") for name in VERBS)


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
            text = (
                (str(value).lower() if isinstance(value, bool) else str(value))
                .removeprefix("sqlite:///")
                .removeprefix(f"{tmp_path.resolve()}/")
            )
            text = text.replace(str(Path.home()), "~")
        _, variable, default, _ = table[f"`{name}`"].removeprefix("| ").split(" | ", 3)
        assert (variable, default.strip("`")) == (f"`BENCH_{name.upper()}`", text)


def test_the_reference_has_every_key_of_a_policy_rule_with_its_default():
    table = rows(section(REFERENCE, "Policy rules"))
    keys = [f.name for f in dataclasses.fields(policy.Rule)]
    assert {"key", *(f"`{key}`" for key in keys)} == set(table)
    for name in policy.LIMITS.keys() - {"budget_s"}:  # an option of its own
        assert f"| {getattr(model.Policy(), name)} |" in table[f"`{name}`"], name


def test_the_reference_has_every_form_of_a_side():
    """Prefixes that `bench compare` reads, each in a row of the table of sides."""
    written = " ".join(first for first in rows(section(REFERENCE, "Verbs")))
    forms = set(re.findall(r"\b(\w+):", parse.FORMS))
    assert forms == {"env", "device", "python", "run"}
    assert not [form for form in forms if f"`{form}:" not in written]


def test_the_pages_name_the_looks_of_the_gate():
    """Counts in prose are those of the boundary's table."""
    looks = f"{', '.join(map(str, LOOKS[:-1]))} and {LOOKS[-1]} launches"
    assert looks in " ".join(section(ROOT / "docs" / "measuring.md", "The gate").split())


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


def test_the_reference_has_every_word_of_dev_py():
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    dev = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dev)
    assert {"word", *(f"`{word}`" for word in dev.VERBS)} == set(rows(section(REFERENCE, "dev.py")))


def test_the_readme_has_every_suite_that_people_run():
    found = NativeSource([str(ROOT / "suites")]).discover(Target())
    there = {f"`{b.suite}`" for b in found.benchmarks if {"quick", "full"} & set(b.profiles)}
    written = set(rows(section(ROOT / "README.md", "What it measures today"))) - {"suite"}
    assert written == there, f"README.md, suites: missing {there - written}, stale {written - there}"


# Words and formats


def classes(*modules):
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def test_the_glossary_has_every_class_of_the_model_and_no_other():
    written = {first.strip("`") for first in rows(text_of(ROOT / "docs" / "glossary.md")) if first.startswith("`")}
    there = set(classes(metrics, model))
    assert written == there, f"docs/glossary.md: missing {there - written}, stale {written - there}"


@pytest.mark.parametrize("name", ["Better", "Kind", "Summary", "FailureKind", "RunStatus", "Verdict"])
def test_the_glossary_names_every_member_of(name):
    row = rows(text_of(ROOT / "docs" / "glossary.md"))[f"`{name}`"]
    missing = [member.value for member in classes(metrics, model)[name] if member.value not in re.findall(r"\w+", row)]
    assert not missing, f"docs/glossary.md, {name}, lacks {missing}"


def test_the_reference_has_every_field_of_a_run():
    table = rows(section(REFERENCE, "Run: `bench-run`"))
    derived = {"Estimate", "Comparison"}  # not stored
    wrong = []
    for name, kind in classes(metrics, model).items():
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


def test_the_reference_has_every_field_of_the_self_test():
    answer = compare.ArmComparison(name="x", verdict=model.Verdict.UNCHANGED, launches=6, basis="time")
    found = [Trial(workload="x", percent=percent, answer=answer) for percent in (0, 10)]
    document = selftest_document("key", found, rates(found), [])
    text = section(REFERENCE, "Self-test: `bench-selftest`") + section(REFERENCE, "Report: `bench-report`")
    missing = keys_of(document, "found") - {10, "10"} - named(text)
    assert not missing, f"docs/reference.md, Self-test, lacks {missing}"


def test_the_reference_has_every_field_of_the_claims():
    document = json.loads(claims_json(answers(claims_of(["suites"], ROOT), [make_run()]), "fingerprint"))
    text = section(REFERENCE, "Claims: `bench-claims`") + section(REFERENCE, "Report: `bench-report`")
    found = {word.strip() for row in rows(text) for word in row.split(",")} | named(text)
    missing = keys_of(document, "counts") - found - {finding.value for finding in Finding}
    assert not missing, f"docs/reference.md, Claims, lacks {missing}"
    assert {finding.value for finding in Finding} <= found


def test_the_reference_has_every_field_of_a_bisection():
    change = Change(name="c1")
    estimate = model.Estimate(value=1.0)
    benchmark = model.Benchmark(name="x", version="1", suite="s", source="m:x")
    question = suspects.Question(
        changes=(change, change),
        variant="x",
        variant_params={},
        benchmark=benchmark,
        metric=TIME,
        policy=model.Policy(),
    )
    outcome = suspects.Outcome(
        question=question, metric=TIME, verdict=model.Verdict.REGRESSED, ended="found", whole=estimate,
        suspects=(change,), steps=(suspects.Step(change=change, place="bad", level=estimate),),
        effect=suspects.Effect(base=change, head=change, change=estimate, confirmed=True),
    )  # fmt: skip
    document = json.loads(bisection_json(outcome, exit_code=3))
    text = section(REFERENCE, "Bisection: `bench-bisection`") + section(REFERENCE, "Report: `bench-report`")
    missing = keys_of(document) - named(text)
    assert not missing, f"docs/reference.md, Bisection, lacks {missing}"


def test_the_reference_has_every_field_of_a_profile():
    side = profiles.Profile(own={"f": 2.0}, counts={"f": 1.0}, stacks={"f": 2.0})
    other = profiles.Profile(own={"f": 3.0}, counts={"f": 2.0}, stacks={"f": 3.0})
    found = profiles.compare_profiles(
        [(side, other)] * 3, [(1.0, 1.5)] * 3, variant="x", engine="cprofile", base="a", head="b"
    )
    assert found.frames
    text = section(REFERENCE, "Profile: `bench-profile`") + section(REFERENCE, "Report: `bench-report`")
    missing = keys_of(json.loads(profile_json(found))) - named(text)
    assert not missing, f"docs/reference.md, Profile, lacks {missing}"


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
