"""The harness decides as the product does, and says what is wrong with a pool."""

import json

import numpy as np
import pytest

from bench.stats.moderated import (
    MODERATED_CONFIRMATION,
    MODERATED_LOOKS,
    Prior,
    confirm_moderated,
    decide_moderated,
)
from bench.stats.sequential import LOOKS, State, confirm, decide, decide_always_valid
from benchmarks.operating_characteristics import (
    EXHAUSTED,
    FORMAT,
    IMPROVED,
    REGRESSED,
    UNCHANGED,
    Rule,
    characteristics,
    confirmed,
    gate,
    main,
)

CODES = {
    State.REGRESSED: REGRESSED, State.IMPROVED: IMPROVED, State.UNCHANGED: UNCHANGED, State.EXHAUSTED: EXHAUSTED,
}  # fmt: skip


def mixed_streams(columns):
    """Streams that end in every way: shifts of −6 to 6 %, spreads from quiet to hopeless."""
    rng = np.random.default_rng(1)
    return np.stack([rng.normal(rng.uniform(-0.06, 0.06), rng.choice([0.005, 0.02, 0.3]), columns) for _ in range(120)])


@pytest.mark.parametrize("looks", [LOOKS, LOOKS[:3]])
def test_the_gate_ends_each_stream_as_decide_does(looks):
    streams = mixed_streams(looks[-1])
    state, taken = gate(streams, Rule(looks=looks))
    for row, values in enumerate(streams):
        n = looks[0]
        while (decision := decide(list(values[:n]), better_sign=-1, looks=looks)).next_look is not None:
            n = decision.next_look
        assert (state[row], taken[row]) == (CODES[decision.state], n)
    assert set(state) == set(CODES.values())


def test_the_gate_ends_each_stream_as_decide_always_valid_does():
    streams = mixed_streams(20)
    state, taken = gate(streams, Rule(looks=tuple(range(6, 21)), always_valid=True))
    for row, values in enumerate(streams):
        n = 6
        while (decision := decide_always_valid(list(values[:n]), better_sign=-1, final=n == 20)).next_look is not None:
            n = decision.next_look
        assert (state[row], taken[row]) == (CODES[decision.state], n)
    assert set(state) == set(CODES.values())


def test_the_gate_ends_each_stream_as_decide_moderated_does():
    prior = Prior(variance=0.01**2, freedom=8.0)
    streams = mixed_streams(MODERATED_LOOKS[-1])
    state, taken = gate(streams, Rule(looks=MODERATED_LOOKS, borrowed=20), prior)
    for row, values in enumerate(streams):
        n = MODERATED_LOOKS[0]
        while (decision := decide_moderated(list(values[:n]), prior, better_sign=-1)).next_look is not None:
            n = decision.next_look
        assert (state[row], taken[row]) == (CODES[decision.state], n)
    assert set(state) == set(CODES.values())
    fresh = streams[:, :MODERATED_CONFIRMATION]
    found = confirmed(fresh, Rule(borrowed=20), prior)
    assert [confirm_moderated(list(row), prior, better_sign=-1).confirmed for row in fresh] == list(found)
    assert 0 < found.sum() < len(found)


@pytest.mark.parametrize("moods", [0, 3])
def test_with_the_spread_of_earlier_runs_the_same_code_raises_few_alarms_before_and_fewer_after(moods):
    """At most twice the promised half per cent a side where the spread changes by a factor of four between runs."""
    rule = Rule(looks=MODERATED_LOOKS, alpha=0.01, borrowed=20, moods=moods)
    pool = 0.02 * np.random.default_rng(1).standard_normal(500)
    (outcome,) = characteristics("w", pool, rule, 8000, np.random.default_rng(2), effects=[0.0])
    assert outcome.before.low > 0.0
    assert outcome.before.value < (0.01 if moods else 0.005)
    assert outcome.after.value < 0.0005


def test_confirmation_is_the_products():
    streams = mixed_streams(18)
    found = confirmed(streams, Rule())
    assert [confirm(list(row), better_sign=-1).confirmed for row in streams] == list(found)
    assert 0 < found.sum() < len(found)


def test_false_alarms_are_rare_and_power_grows_with_the_effect():
    pool = np.random.default_rng(2).normal(0, 0.015, 500)
    found = list(characteristics("w", pool, Rule(), 4000, np.random.default_rng(3)))
    assert found[0].before.value < 0.005
    assert found[0].unchanged.value > 0.95
    power = [o.before.value for o in found]
    assert power == sorted(power)
    assert power[3] > 0.95
    assert [o.launches for o in found[2:]] == sorted((o.launches for o in found[2:]), reverse=True)
    assert all(o.after.low <= o.after.value <= o.after.high <= o.before.high for o in found)


def test_a_pool_that_leans_to_one_side_is_centred():
    """A recorded A/A pool whose median is 5 % off raises no more alarms than one around zero."""
    pool = np.random.default_rng(4).normal(0.05, 0.015, 500)
    outcome = next(characteristics("w", pool, Rule(), 2000, np.random.default_rng(5)))
    assert outcome.before.value < 0.01


def pool_file(folder, **changes):
    ratios = [round(float(x), 5) for x in np.random.default_rng(6).normal(0, 0.01, 20)]
    path = folder / "pool.json"
    path.write_text(json.dumps({"format": FORMAT, "workloads": {"bert": ratios, "mobilenet": ratios[::-1]}} | changes))
    return path


def test_the_table_names_every_workload_and_the_same_seed_repeats_it(tmp_path, capsys):
    path = str(pool_file(tmp_path))
    assert main([path, "--streams", "500"]) == 0
    first = capsys.readouterr().out
    assert main([path, "--streams", "500"]) == 0
    assert capsys.readouterr().out == first
    assert first.count("bert") == first.count("mobilenet") == first.count("mean of 2") == 6
    assert main([path, "--streams", "500", "--seed", "2"]) == 0
    assert capsys.readouterr().out != first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "is no pool of launches"),
        ({"workloads": {}}, "holds no workloads"),
        ({"workloads": {"bert": [0.1] * 9}}, "bert in"),
        ({"workloads": {"bert": [0.1] * 10 + [None]}}, "launch 11 of bert in"),
        ({"workloads": {"bert": [0.1] * 10 + [float("nan")]}}, "launch 11 of bert in"),
    ],
)
def test_a_bad_pool_is_one_sentence(tmp_path, capsys, changes, message):
    assert main([str(pool_file(tmp_path, **changes))]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "pool.json" in error
    assert error.count("\n") == 1


def test_nothing_to_draw_from_and_no_file_and_no_budget(tmp_path, capsys):
    assert main([]) == 2
    assert main([str(tmp_path / "absent.json")]) == 2
    assert main([str(pool_file(tmp_path)), "--budget", "4"]) == 2
    assert capsys.readouterr().err.count("error: ") == 3
