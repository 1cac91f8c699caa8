"""A planted regression goes the whole way: nights, suspect, proof, regression, bisection, notice, triage, fixed."""

import json
import subprocess

import pytest

from bench.errors import Exit

SUITE = """
from bench.api import *
from work import call

@benchmark(profiles=("quick", "full"))
def work(device):
    '''A loop.'''
    return Work(run=call)
"""

WORK = """
# {remark}
def call():
    total = 0
    for i in range({steps}):
        total += i * i % 7
    return total
"""

NIGHTS_BEFORE = 10
STEPS, SLOW = 3000, 4200

pytestmark = pytest.mark.slow


class Project:
    """A repository whose every commit is measured by a night of its own."""

    def __init__(self, bench):
        self.bench = bench
        self.count = 0
        folder = bench.folder
        (folder / "suites").mkdir()
        (folder / "suites" / "demo.py").write_text(SUITE)
        (folder / "pyproject.toml").write_text(
            "[project]\nname='planted'\nversion='1'\n"
            "[build-system]\nrequires=['hatchling']\nbuild-backend='hatchling.build'\n"
            "[tool.hatch.build.targets.wheel]\ninclude=['work.py']\n"
            "[[tool.bench.notify]]\nkind='stdout'\n"
        )
        (folder / ".gitignore").write_text(".bench/\nmachine.lock\n__pycache__/\n*.egg-info/\n")
        self.git("init", "-q", "-b", "main")
        bench.environ |= {"BENCH_SUITES": "suites", "PYTHONPATH": str(folder)}

    def git(self, *arguments):
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=self.bench.folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, steps):
        self.count += 1
        (self.bench.folder / "work.py").write_text(WORK.format(remark=f"commit {self.count}", steps=steps))
        self.git("add", "-A")
        self.git("commit", "-qm", f"commit {self.count}", "--date", f"2027-01-{self.count:02}T00:00:00Z")
        return self.git("rev-parse", "HEAD")

    def night(self, steps):
        commit = self.commit(steps)
        self.bench("run", "--launches", "2")
        return commit


def test_a_planted_regression_goes_the_whole_way(bench):
    project = Project(bench)
    for _ in range(NIGHTS_BEFORE):
        good = project.night(STEPS)
    bench("detect", code=None)
    project.commit(STEPS)  # two commits that no night has measured: the culprit is the second of three
    culprit = project.commit(SLOW)
    bad = project.night(SLOW)

    found = json.loads(bench("detect", "--json")[0])
    suspects = [c for c in found["suspects"] if c["series"]["metric"]["name"] == "time"]
    assert [(c["last_good"]["commit"], c["first_changed"]["commit"]) for c in suspects] == [(good, bad)]
    assert found["opened"] == []
    assert bench("notify")[0] == "", "nobody is told of a suspicion"

    out, _ = bench("prove", "--budget", "20", "--json", code=Exit.REGRESSION)
    proofs = json.loads(out)["proofs"]
    assert {p["answer"] for p in proofs if p["metric"] == "time"} == {"confirmed"}
    assert len({p["run_key"] for p in proofs}) == 1, "one experiment answers for wall and CPU time"
    (regression,) = json.loads(bench("regressions", "list", "--json")[0])["regressions"]
    assert (regression["state"], regression["cause"]) == ("open", "code")

    key = regression["key"][:8]
    out, _ = bench("bisect", good, bad, "demo.work", "--regression", key, code=Exit.REGRESSION)
    assert culprit[:9] in out
    out, _ = bench("notify")
    assert key in out
    assert culprit[:9] in out
    assert bench("notify")[0] == "", "told once"

    bench("profile", "--regression", key, "--repetitions", "3", "--seconds", "0.01")
    kept = json.loads(bench("profile", "--regression", key, "--stored", "--json")[0])
    assert (kept["base"], kept["head"]) == (good[:7], bad[:7])
    assert "where the time went  demo.work, by cprofile" in bench("regressions", "show", key)[0]

    bench("regressions", "ack", key, "--who", "ada")
    for _ in range(5):
        project.night(STEPS)
    bench("detect", code=None)  # what else moves on a busy machine is not asked here
    shown = json.loads(bench("regressions", "show", key, "--json")[0])
    assert shown["regression"]["state"] == "fixed"
    assert [e["who"] for e in shown["events"] if e["action"] in ("acknowledged", "fixed")] == ["ada", "bench"]
    assert "fixed" in bench("notify")[0]
    assert "▼ worse" in bench("history", "demo.work")[0]
