"""The set-up: what it asks for, when it asks again, and what it says when something fails."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def dev(tmp_path, monkeypatch):
    """dev.py on a project of its own, with every command recorded and none run."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    binaries = tmp_path / ".venv" / "bin"
    for name, value in {
        "ROOT": tmp_path,
        "VENV": tmp_path / ".venv",
        "BIN": binaries,
        "PYTHON": binaries / "python",
        "STAMP": tmp_path / ".venv" / "dev-stamp.json",
        "CONSTRAINTS": tmp_path / "constraints.txt",
    }.items():
        monkeypatch.setattr(module, name, value)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "constraints.txt").write_text("numpy==2.0\n")
    module.steps, module.calls = [], []

    def make_venv():
        binaries.mkdir(parents=True, exist_ok=True)
        module.PYTHON.touch()

    def call(command, cwd=None):
        module.calls.append([str(word) for word in command])
        return 0

    monkeypatch.setattr(module, "make_venv", make_venv)
    monkeypatch.setattr(module, "installer", lambda: ["INSTALL"])
    monkeypatch.setattr(module, "installed", lambda name: False)
    monkeypatch.setattr(module, "finds", lambda requirement: True)
    monkeypatch.setattr(module, "step", lambda title, command: module.steps.append([str(word) for word in command]))
    monkeypatch.setattr(module, "call", call)
    monkeypatch.setattr(module.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.delenv("BENCH_TORCH_INDEX", raising=False)
    return module


def torches(dev) -> list[str]:
    return [word for command in dev.steps for word in command if re.match(r"torch\b", word)]


def test_quick_installs_all_in_one_call_and_runs_the_quick_suite(dev, tmp_path):
    assert dev.main(["quick", "--launches", "3"]) == 0
    first, weights = dev.steps
    assert first == ["INSTALL", "-c", str(tmp_path / "constraints.txt"), "-e", f"{tmp_path}[dashboard,suites]",
                     f"torch=={dev.TORCH}+cpu"]  # fmt: skip
    assert weights[-len(dev.WEIGHTS) - 1 :] == ["--no-deps", *dev.WEIGHTS]
    assert dev.calls == [[str(dev.BIN / "bench"), "run", "--profile", "quick", "--launches", "3"]]


def test_a_second_call_sets_nothing_up_again(dev):
    dev.main(["quick"])
    dev.steps.clear()
    dev.main(["quick"])
    dev.main(["bench", "list"])
    assert dev.steps == []
    assert dev.calls[-1] == [str(dev.BIN / "bench"), "list"]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", ".venv/pyvenv.cfg"])
def test_what_an_installation_follows_from_makes_it_anew(dev, tmp_path, name):
    dev.main(["quick"])
    dev.steps.clear()
    (tmp_path / name).write_text("changed")
    dev.main(["quick"])
    assert len(dev.steps) == 2


def test_more_extras_install_again_and_fewer_do_not(dev, tmp_path):
    dev.main(["quick"])
    dev.steps.clear()
    dev.main(["test"])
    assert f"{tmp_path}[dashboard,postgres,suites,test]" in dev.steps[0]
    dev.steps.clear()
    dev.main(["quick"])
    assert dev.steps == []


def test_a_set_up_that_fails_is_not_remembered(dev, monkeypatch):
    dev.main(["quick"])
    (dev.ROOT / "pyproject.toml").write_text("changed")

    def fail(title, command):
        raise dev.Failed("no")

    monkeypatch.setattr(dev, "step", fail)
    assert dev.main(["quick"]) == 7
    assert not dev.STAMP.exists()


def test_no_torch_leaves_it_out_and_a_later_bench_respects_that(dev):
    dev.main(["quick", "--no-torch"])
    dev.main(["bench", "run"])
    assert torches(dev) == []
    assert json.loads(dev.STAMP.read_text())["torch"] == "left out"
    dev.main(["quick"])
    assert torches(dev) == [f"torch=={dev.TORCH}+cpu"]


def test_without_a_cpu_build_the_given_index_serves_torch_and_only_torch(dev, monkeypatch):
    monkeypatch.setattr(dev, "finds", lambda requirement: False)
    monkeypatch.setenv("BENCH_TORCH_INDEX", "file:///wheels")
    dev.main(["quick"])
    with_index = [command for command in dev.steps if "--index-url" in command]
    assert with_index == [
        ["INSTALL", "-c", str(dev.CONSTRAINTS), "--index-url", "file:///wheels", f"torch=={dev.TORCH}"]
    ]


def test_the_plain_build_comes_last_with_a_line_about_its_size(dev, monkeypatch, capsys):
    monkeypatch.setattr(dev, "finds", lambda requirement: False)
    dev.main(["quick"])
    assert torches(dev) == [f"torch=={dev.TORCH}"]
    assert "2.7 GB" in capsys.readouterr().err


def test_other_systems_take_the_plain_build_which_is_the_cpus(dev, monkeypatch, capsys):
    monkeypatch.setattr(dev.sys, "platform", "darwin")
    dev.main(["quick"])
    assert torches(dev) == [f"torch=={dev.TORCH}"]
    assert "GB" not in capsys.readouterr().err


def test_a_torch_that_is_there_is_left_alone(dev, monkeypatch):
    monkeypatch.setattr(dev, "installed", lambda name: True)
    dev.main(["quick"])
    assert torches(dev) == []


def test_test_runs_everything_and_fails_if_anything_failed(dev, monkeypatch, capsys):
    programs = []

    def call(command, cwd=None):
        programs.append(Path(command[0]).name)
        return 1 if programs[-1] == "mypy" else 0

    monkeypatch.setattr(dev, "call", call)
    assert dev.main(["test", "-k", "lock"]) == 1
    assert programs == ["ruff", "ruff", "mypy", "lint-imports", "python", "python"]
    assert "failed: mypy" in capsys.readouterr().err, "and nothing of the vendors' environments"
    programs.clear()
    monkeypatch.setattr(dev, "run_checks", lambda: {"ruff check": 0})
    assert dev.main(["test"]) == 0


def test_check_needs_no_torch(dev):
    dev.main(["check"])
    assert torches(dev) == []


@pytest.mark.parametrize("words", [[], ["no-such-verb"], ["setup", "too-much"], ["--no-torch"]])
def test_what_is_not_understood_is_usage(dev, words, capsys):
    assert dev.main(words) == 2
    assert "dev.py quick" in capsys.readouterr().err


def test_help_is_a_result(dev, capsys):
    assert dev.main(["--help"]) == 0
    assert "dev.py quick" in capsys.readouterr().out


def test_places_of_pip_are_passed_on_to_uv(dev, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "/a /b")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///c")
    monkeypatch.setenv("UV_INDEX", "file:///mine")
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    found = dev.installers_environment()
    assert (found["UV_FIND_LINKS"], found["UV_INDEX"]) == ("/a,/b", "file:///mine")


def test_a_failing_step_shows_the_command_its_last_lines_and_what_to_do(dev, monkeypatch):
    spec = importlib.util.spec_from_file_location("dev_real", ROOT / "dev.py")
    real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    code = "for n in range(40): print('line', n)\nprint('WARNING:', 'no' + 'ise')\nraise SystemExit(3)"
    monkeypatch.setattr(real, "installer", lambda: [sys.executable, "-c", code])
    with pytest.raises(real.Failed) as caught:
        real.install(["torch==1+cpu"], "everything")
    text = str(caught.value)
    assert "line 39" in text
    assert "line 3\n" not in text
    assert "noise" not in text
    assert sys.executable in text
    assert text.endswith("add --no-torch.")


def test_a_missing_program_is_one_sentence():
    spec = importlib.util.spec_from_file_location("dev_real", ROOT / "dev.py")
    real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    with pytest.raises(real.Failed, match="cannot be started"):
        real.step("x", ["/no/such/program"])


def test_the_lock_keeps_no_torch_no_cuda_and_no_index(dev):
    text = (
        "--index-url file:///somewhere\n# note\nnumpy==2.0 ; python_version < '3.12'\ntorch==2.13.0\ntriton==3\n"
        "nvidia-cublas==13\ncuda-bindings==13\ntorchmetrics==1.0\n"
    )
    assert dev.lockable(text) == ["numpy==2.0 ; python_version < '3.12'", "torchmetrics==1.0"]


def test_constraints_name_what_the_project_needs_and_nothing_that_dev_chooses():
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    names = {line.split("==")[0] for line in lines}
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line) for line in lines)
    assert {"numpy", "click", "streamlit", "onnxruntime", "psycopg", "pytest", "sympy"} <= names
    assert not {name for name in names if name in ("torch", "triton") or name.startswith(("nvidia", "cuda"))}


def test_the_set_up_names_no_registry():
    for name in ("dev.py", "constraints.txt", ".ci/run", ".github/workflows/check.yml", "Makefile"):
        text = (ROOT / name).read_text()
        assert not re.search(r"https?://|pypi|pythonhosted|download\.pytorch", text, flags=re.IGNORECASE), name


def test_older_pythons_are_told_so():
    """The file must at least parse and stop with a sentence there."""
    code = (
        "import sys; sys.version_info = (3, 8, 0); sys.argv = ['dev.py'];"
        f"exec(compile(open({str(ROOT / 'dev.py')!r}).read(), 'dev.py', 'exec'), {{'__name__': '__main__'}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("dev: bench needs Python 3.11 or newer")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_ci_installs_what_is_missing_and_requires_services(tmp_path):
    """On a made-up system without Chromium and valgrind and with an apt-get that only takes notes."""
    project = tmp_path / "project"
    (project / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", project / ".ci" / "run")
    (project / "dev.py").write_text("import os, sys; print(sys.argv[1:], os.environ['BENCH_REQUIRE_SERVICES'])")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "git"):
        (programs / name).symlink_to(shutil.which(name) or shutil.which("true"))
    (programs / "python3").symlink_to(sys.executable)
    (programs / "apt-get").write_text(f'#!{shutil.which("bash")}\necho "$@" >> {tmp_path}/apt.log\n')
    (programs / "sudo").write_text(f'#!{shutil.which("bash")}\nshift\n"$@"\n')
    for name in ("apt-get", "sudo"):
        (programs / name).chmod(0o755)
    done = subprocess.run(
        [shutil.which("bash"), str(project / ".ci" / "run"), "-x"], env={**os.environ, "PATH": str(programs)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout == "['test', '-x'] 1\n", done.stderr
    assert (
        (tmp_path / "apt.log")
        .read_text()
        .splitlines()[-1]
        .endswith(" chromium valgrind redis-server mariadb-server-core")
    )
