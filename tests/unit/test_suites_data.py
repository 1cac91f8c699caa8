"""The shipped data are what they are said to be, and suite modules are cheap to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.api import Skip
from bench.errors import HostError
from suites.data import functions
from suites.data.collect import records as collect
from suites.imports import need

ROOT = Path(__file__).parents[2]
MODULES = sorted(f"suites.{p.stem}" for p in (ROOT / "suites").glob("*.py") if p.stem != "__init__")


def test_other_bytes_are_refused_in_one_sentence(tmp_path):
    copy = tmp_path / "functions.jsonl.gz"
    copy.write_bytes(functions.FILE.read_bytes() + b"\0")
    with pytest.raises(HostError) as caught:
        functions.read(copy, functions.SHA256)
    text = str(caught.value)
    assert str(copy) in text
    assert functions.SHA256[:12] in text
    assert "restore it" in text
    assert "\n" not in text


def test_missing_data_are_named(tmp_path):
    with pytest.raises(HostError, match=r"nowhere\.gz cannot be read"):
        functions.read(tmp_path / "nowhere.gz", functions.SHA256)


def test_readme_states_the_digests_in_force():
    from suites.models import minilm

    text = (functions.FILE.parent / "README.md").read_text(encoding="utf-8")
    assert all(digest in text for digest in (functions.SHA256, minilm.WEIGHTS_SHA256, minilm.TOKENIZER_SHA256))


def test_records_know_a_function_of_the_library():
    """difflib.restore(delta, which) of CPython 3.11, read in its source."""
    record = next(r for r in functions.records() if (r["module"], r["name"]) == ("difflib", "restore"))
    assert record["arguments"] == [{"name": "delta", "default": ""}, {"name": "which", "default": ""}]
    assert record["summary"] == "Generate one of the two sequences that generated a delta."
    assert record["kind"] == "function"
    assert record["public"] is True


def test_pairs_are_distinct_and_stay():
    pairs = functions.pairs(400)
    assert len(pairs) == len({summary for summary, _ in pairs}) == 400
    assert functions.pairs(10) == pairs[:10]
    with pytest.raises(ValueError, match="the data holds 11"):
        functions.pairs(100_000)


def test_collect_reads_arguments_defaults_and_lines(tmp_path):
    (tmp_path / "one.py").write_text(
        'class A:\n    """About A."""\n    async def _f(self, x=(1, 2), *, y: int = 3, z):\n'
        '        """Do\n        it.\n\n        More\n        words.\n        """\n\ndef bare(): pass\n'
    )
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "two.py").write_text('def g():\n    """Left out."""\n')
    first, second = collect(tmp_path)
    assert (first["module"], first["name"], first["kind"], first["lines"]) == ("one", "A", "class", 9)
    assert (second["name"], second["kind"], second["line"], second["public"]) == ("A._f", "coroutine", 3, False)
    assert second["arguments"] == [
        {"name": "self", "default": ""}, {"name": "x", "default": "(1, 2)"},
        {"name": "y", "default": "3"}, {"name": "z", "default": ""},
    ]  # fmt: skip
    assert (second["summary"], second["body"]) == ("Do it.", "More words.")


@pytest.mark.parametrize("module", MODULES)
def test_suite_module_imports_with_the_standard_library_alone(module):
    """-I -S: no site-packages, no environment; whatever is heavy belongs inside functions."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_missing_package_is_skipped_with_the_way_to_get_it():
    with pytest.raises(Skip, match=r"no_such_codec\.part is not installed: pip install x"):
        need("no_such_codec.part", "pip install x")


def test_broken_package_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_codec.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Skip, match="half_codec cannot be imported because no_such_dependency is missing"):
        need("half_codec", "pip install x")
