"""Flag > environment > pyproject > default."""

import pytest

from bench.config import SETTINGS, load_config
from bench.errors import ConfigError, Exit


def project(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_defaults_stand_beside_the_nearest_pyproject(tmp_path):
    project(tmp_path, "[project]\nname='x'\n")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    config = load_config(cwd=tmp_path / "deep" / "er", environ={})
    assert config.root == tmp_path
    assert config.database == f"sqlite:///{tmp_path}/.bench/bench.db"
    assert config.suites == ("suites",)


def test_each_layer_wins_over_the_one_below(tmp_path):
    project(tmp_path, "[tool.bench]\ndatabase='file.db'\nprofile='full'\nsuites=['a','b']\n")
    assert load_config(cwd=tmp_path, environ={}).database == f"sqlite:///{tmp_path}/file.db"
    environ = {"BENCH_DATABASE": "postgresql+psycopg://u@h/d", "BENCH_SUITES": "x:y"}
    config = load_config(cwd=tmp_path, environ=environ)
    assert (config.database, config.suites, config.profile) == ("postgresql+psycopg://u@h/d", ("x", "y"), "full")
    config = load_config({"database": "/abs.db", "suites": ("z",)}, cwd=tmp_path, environ=environ)
    assert (config.database, config.suites) == ("sqlite:////abs.db", ("z",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.bench]\ndatabse='x'\n", "databse"),
        ("[tool.bench]\nprofile='fast'\n", "fast"),
        ("[tool.bench]\nsuites='x'\n", "list"),
        ("[tool.bench]\ndatabase=3\n", "text"),
        ("[tool.bench]\ncanary='perhaps'\n", "true or false"),
        ("[tool.bench]\ncanary=1\n", "true or false"),
        ("[tool.bench\n", "cannot be read"),
        ("[tool]\nbench=3\n", "must be a table"),
    ],
)
def test_a_wrong_setting_names_its_layer(tmp_path, text, says):
    with pytest.raises(ConfigError, match=says) as caught:
        load_config(cwd=project(tmp_path, text), environ={})
    assert "pyproject.toml" in str(caught.value)
    assert caught.value.exit_code is Exit.USAGE


def test_a_wrong_variable_names_itself(tmp_path):
    with pytest.raises(ConfigError, match="BENCH_PROFILE"):
        load_config(cwd=tmp_path, environ={"BENCH_PROFILE": "slow"})


def test_every_setting_has_a_variable(tmp_path):
    values = {f"BENCH_{name.upper()}": "full" for name in SETTINGS} | {"BENCH_CANARY": "0"}
    values["BENCH_KEEP_SAMPLES_DAYS"] = "30"
    config = load_config(cwd=tmp_path, environ=values)
    assert config.tags == ("full",)
    assert config.branches == ("full",)
    assert config.canary is False
    assert config.keep_samples_days == 30
    assert config.state == tmp_path / "full"


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "ten", "", "²"])
def test_an_age_is_a_whole_number_of_days(tmp_path, value):
    (tmp_path / "pyproject.toml").write_text(f'[tool.bench]\nkeep_samples_days = "{value}"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="keep_samples_days must be a whole number of at least 1"):
        load_config(cwd=tmp_path, environ={})
