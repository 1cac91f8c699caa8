"""The gate judged on made-up trials: rates, mistakes and what reports say of them."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from bench.compare import ArmComparison
from bench.errors import Exit
from bench.model import Failure, FailureKind, Verdict
from bench.selftest import SOURCE, Trial, false_alarm_sentence, false_alarms, mistakes, rates, target, trials
from bench.testing import as_confirmation, make_pair, make_run

V = Verdict


def trial(percent, verdict, workload="selftest.x", launches=18):
    return Trial(
        workload=workload, percent=percent, answer=ArmComparison(name=workload, verdict=verdict, launches=launches)
    )


def pair(percent, effect=None, *, number=0, name="selftest.x", **facts):
    """One trial as `bench selftest` plans it; without `effect` the injected one."""
    return make_pair(
        1 + percent / 100 if effect is None else effect, name=name, base=target(0, f"base{number}"),
        head=target(percent, f"+{percent}%#{number}"), **facts,
    )  # fmt: skip


def run_of(*pairs):
    return replace(make_run(), experiments=pairs, source=SOURCE)


def test_arms_of_a_trial_differ_in_one_variable():
    assert target(5, "b").variables == {"BENCH_SELFTEST_PERCENT": "5"}


def test_rates_are_shares_of_trials_of_one_kind_with_wilson_intervals():
    found = rates(
        [trial(0, V.REGRESSED), *[trial(0, V.UNCHANGED)] * 8, trial(0, V.IMPROVED), trial(10, V.REGRESSED),
         trial(10, V.INCONCLUSIVE), trial(1, V.UNCHANGED)]
    )  # fmt: skip
    assert (found.false_alarm.value, found.false_improvement.value, found.unchanged.value) == (0.1, 0.1, 0.8)
    # Wilson (1927), 1 of 10: (0.018, 0.404)
    assert (found.false_alarm.low, found.false_alarm.high) == (pytest.approx(0.0179, 0.01), pytest.approx(0.4042, 0.01))
    assert found.false_alarm.n == 10
    assert {percent: share.value for percent, share in found.found.items()} == {1: 0.0, 10: 0.5}
    assert list(found.found) == [1, 10]


def test_what_failed_or_was_not_measured_is_no_trial():
    found = rates([trial(0, V.FAILED), trial(0, V.INCONCLUSIVE, launches=0), trial(10, V.FAILED)])
    assert (found.false_alarm, found.unchanged, found.found) == (None, None, {})


@pytest.mark.parametrize("verdict", [V.REGRESSED, V.IMPROVED])
def test_the_same_code_called_changed_is_a_mistake(verdict):
    assert mistakes([trial(0, verdict)]) == [f"selftest.x: the same code was called {verdict.value}"]


@pytest.mark.parametrize("verdict", [V.UNCHANGED, V.IMPROVED, V.INCONCLUSIVE])
def test_ten_per_cent_that_are_not_found_are_a_mistake(verdict):
    assert mistakes([trial(10, verdict)]) == [f"selftest.x: 10 % slower was called {verdict.value}"]


@pytest.mark.parametrize(
    "fine",
    [trial(0, V.UNCHANGED), trial(0, V.INCONCLUSIVE), trial(5, V.UNCHANGED), trial(5, V.INCONCLUSIVE),
     trial(10, V.REGRESSED), trial(10, V.INCONCLUSIVE, launches=0)],
)  # fmt: skip
def test_what_a_believable_gate_may_say_is_no_mistake(fine):
    """Five per cent may stay open on a busy machine; what was skipped says nothing of the gate."""
    assert mistakes([fine]) == []


def test_trials_are_read_out_of_a_stored_run_with_their_confirmations():
    found = trials(run_of(pair(0), pair(10, number=1, seed=1), as_confirmation(pair(10, number=1, seed=2))))
    assert [(t.percent, t.verdict) for t in found] == [(0, V.UNCHANGED), (10, V.REGRESSED)]
    assert found[1].answer.confirmed is True
    taken_back = trials(run_of(pair(0, 1.08, seed=1), as_confirmation(pair(0, seed=2))))
    assert [(t.verdict, t.answer.confirmed) for t in taken_back] == [(V.INCONCLUSIVE, False)]


def test_each_answer_keeps_its_own_slowdown_where_only_some_are_confirmed():
    """Confirmations come after all trials, for the suspects alone: they must not shift what was injected."""
    first, second, third = pair(3, number=1), pair(10, number=2), pair(0, number=3)
    again = as_confirmation(pair(3, number=1, seed=5))
    found = trials(run_of(first, second, third, again))
    assert [(t.percent, t.answer.confirmed) for t in found] == [(3, True), (10, None), (0, None)]
    assert [t.verdict for t in found] == [V.REGRESSED, V.REGRESSED, V.UNCHANGED]
    assert mistakes(found) == []


def test_a_failed_workload_is_no_mistake_of_the_gate():
    gone = Failure(kind=FailureKind.SKIPPED, phase="set_up", message="no torch")
    found = trials(run_of(pair(10, failure=gone)))
    assert [t.verdict for t in found] == [V.FAILED]
    assert mistakes(found) == []


def test_the_sentence_counts_alarms_over_all_runs_and_gives_the_worst_that_is_credible():
    quiet = run_of(*(pair(0, number=k, seed=k) for k in range(3)), pair(10, number=9))
    loud = run_of(pair(0, 1.5, number=0))
    assert false_alarm_sentence(false_alarms([quiet])).startswith(
        "measured false-alarm rate of this gate on this machine: 0 of 3 comparisons of the same code (95 %: at most 56"
    )
    assert "1 of 4 comparisons of the same code" in false_alarm_sentence(false_alarms([quiet, loud]))


@pytest.mark.parametrize("runs", [[], [run_of(pair(10))]])
def test_without_a_trial_of_the_same_code_the_sentence_says_how_to_get_one(runs):
    assert (
        false_alarm_sentence(false_alarms(runs))
        == "false-alarm rate not measured on this machine yet: run `bench selftest`"
    )


@pytest.fixture
def selftest(monkeypatch, tmp_path):
    """The command with made-up measurements: head takes `effect(percent)` times as long."""
    from bench.commands.selftest import command
    from bench.paired import Paired

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_LOCK", str(tmp_path / "machine.lock"))
    monkeypatch.setenv("BENCH_STATE", str(tmp_path / ".bench"))

    def make(effect, *arguments, interrupted=False):
        def measured(experiments, **_):
            results = tuple(
                replace(made, experiment=plan, results=tuple(
                    replace(result, arm=arm) for result, arm in zip(made.results, plan.arms, strict=True)))
                for plan in experiments
                for made in [make_pair(effect(int(plan.arms[1].target.variables["BENCH_SELFTEST_PERCENT"])))]
            )  # fmt: skip
            return Paired(comparisons=(), results=results, interrupted=interrupted)

        monkeypatch.setattr("bench.paired.measure_pairs", measured)
        return CliRunner().invoke(
            command, ["--quick", "selftest.interpreter", *arguments], standalone_mode=False, catch_exceptions=False
        )

    return make


def test_a_gate_that_tells_right_from_wrong_ends_with_zero(selftest):
    done = selftest(lambda percent: 1 + percent / 100)
    assert done.return_value is Exit.OK
    assert "the gate can be believed here" in done.output


def test_a_gate_that_calls_the_same_code_changed_ends_with_seven_and_says_so(selftest):
    done = selftest(lambda percent: 1.2)
    assert done.return_value is Exit.ENVIRONMENT
    assert "✗ selftest.interpreter: the same code was called regressed" in done.output
    assert "the gate cannot be believed here: see `bench doctor`" in done.output


def test_a_gate_that_misses_ten_per_cent_ends_with_seven(selftest):
    done = selftest(lambda percent: 1.0, "--json")
    assert done.return_value is Exit.ENVIRONMENT
    assert "10 % slower was called unchanged" in done.output


def test_an_interrupted_selftest_is_no_success(selftest):
    assert selftest(lambda percent: 1 + percent / 100, interrupted=True).return_value is Exit.FAILED
