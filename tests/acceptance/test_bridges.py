"""Our suites under other tools themselves: `asv run` and `asv publish`, and `pytest --benchmark-only`."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap

import pytest

SUITE = """
    from bench.api import HIGHER, Items, Metric, Skip, Work, benchmark

    @benchmark(
        axes={"how": ("sum", "loop"), "n": (1000,)}, baseline={"how": "sum"},
        metrics=(Metric("right", unit="1", better=HIGHER),),
    )
    def add(device, how, n):
        '''Is a loop slower than sum?'''
        def loop():
            total = 0
            for i in range(n):
                total += i
            return total
        run = loop if how == "loop" else lambda: sum(range(n))
        return Work(run=run, items=n, size_bytes=8 * n, check=lambda total: total == n * (n - 1) // 2,
                    report=lambda total: {"right": Items([1, 1, 1, 0])}, notes={"by": how})

    @benchmark(axes={"how": ("wrong", "skips")})
    def odd(device, how):
        '''What is no number.'''
        if how == "skips":
            raise Skip("no such thing; get it")
        return Work(run=int, check=lambda _: False)
"""


def expose(tool):
    return f'from bench.bridges.{tool} import expose\n\nexpose("../mine", into=globals())\n'


@pytest.fixture
def call(tmp_path):
    """Run a Python tool in a project whose suite `mine` holds one benchmark that works and one that does not."""
    files = {
        "mine/shop.py": SUITE,
        "mine/broken.py": "import nothing_of_that_name\n",
        "benchmarks/__init__.py": "",
        "benchmarks/ours.py": expose("asv"),
        "checks/test_ours.py": expose("pytest"),
        "asv.conf.json": json.dumps(
            {"version": 1, "project": "mine", "repo": ".", "branches": ["main"], "environment_type": "existing"}
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    author = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environ = {**os.environ, **author, "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}

    def run(*arguments, code=0):
        done = subprocess.run(arguments, cwd=tmp_path, env=environ, text=True, capture_output=True, timeout=300)
        assert done.returncode == code, f"{arguments} → {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run("git", "init", "-q", "-b", "main")
    run("git", "add", "-A")
    run("git", "commit", "-q", "-m", "start")
    return run


@pytest.mark.skipif(importlib.util.find_spec("asv") is None, reason="asv is not installed")
def test_asv_runs_and_publishes_our_suite(call, tmp_path):
    asv = (sys.executable, "-m", "asv")
    call(*asv, "machine", "--yes")
    commit = call("git", "rev-parse", "HEAD").strip()
    told = call(*asv, "run", "--quick", "--python=same", "--set-commit-hash", commit, code=2)  # two benchmarks fail
    assert "no such thing; get it" in told
    assert "the answer is wrong" in told
    assert "nothing_of_that_name" in told
    (file,) = (tmp_path / "results").glob("*/*existing*.json")
    document = json.loads(file.read_text())
    results = {name: dict(zip(document["result_columns"], row, strict=False))
               for name, row in document["results"].items()}  # fmt: skip
    add = results["shop.add.time_call"]
    assert add["params"] == [["'sum'", "'loop'"], ["1000"]]
    assert 0 < add["result"][0] < add["result"][1] < 1
    assert all(bytes_ > 1_000_000 for bytes_ in results["shop.add.peakmem_call"]["result"])
    assert results["shop.add.track_size"]["result"] == [8000, 8000]
    assert results["shop.add.track_right"]["result"] == [0.75, 0.75]
    wrong, skipped = results["shop.odd.time_call"]["result"]
    assert wrong is None  # asv's failure
    assert skipped != skipped  # asv's n/a
    call(*asv, "publish")
    index = json.loads((tmp_path / "html" / "index.json").read_text())
    assert "Is a loop slower than sum?" in index["benchmarks"]["shop.add.time_call"]["code"]
    (graph,) = (tmp_path / "html" / "graphs").glob("arch-*/**/shop.add.time_call.json")
    assert json.loads(graph.read_text())[0][1] == pytest.approx(add["result"])


def test_pytest_benchmark_times_our_suite(call, tmp_path):
    pytest.importorskip("pytest_benchmark")
    tool = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "checks")
    sampling = ("--benchmark-max-time=0.05", "--benchmark-min-rounds=2")
    told = call(*tool, "--benchmark-only", "--benchmark-json=result.json", *sampling, code=1)
    assert "2 failed, 2 passed, 1 skipped" in told
    assert "no such thing; get it" in told
    assert "the answer is wrong" in told
    assert "suite broken: ModuleNotFoundError: No module named 'nothing_of_that_name'" in told
    found = {b["name"]: b for b in json.loads((tmp_path / "result.json").read_text())["benchmarks"]}
    assert set(found) == {"test_shop_add[how=sum,n=1000]", "test_shop_add[how=loop,n=1000]"}
    plain, loop = found.values()
    assert plain["group"] == loop["group"] == "shop.add[n=1000]"
    assert plain["extra_info"] == {
        "baseline": True, "items": 1000, "size": 8000, "right": 0.75, "notes": {"by": "sum"}
    }  # fmt: skip
    assert 0 < plain["stats"]["min"] < loop["stats"]["min"]
    told = call(*tool, "--benchmark-disable", code=1)  # as ordinary tests
    assert "2 failed, 2 passed, 1 skipped" in told
