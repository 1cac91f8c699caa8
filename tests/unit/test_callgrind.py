"""What callgrind is told, and what is read out of its files; tests/integration has the real one."""

import pytest

from bench.measure import callgrind
from bench.measure.callgrind import CountError, calls_for, instructions, prefix
from bench.measure.meters.instructions import EMPTY, mark_calls


def write(folder, *totals):
    for number, total in enumerate(totals, 1):
        (folder / f"region.{number}").write_text(f"events: Ir\nfn=(1) f\n3 7\n\nsummary: {total}\ntotals: {total}\n")


def test_the_count_is_that_of_the_cheapest_call_less_the_marks(tmp_path):
    write(tmp_path, 2060, 2045, 2050, 9000, 8045, 8051)
    assert instructions(tmp_path, 3) == 6000


def test_marks_that_callgrind_did_not_see_are_a_reason_and_no_count(tmp_path):
    write(tmp_path, 2045, 2045)
    with pytest.raises(CountError, match="did not see the marks"):
        instructions(tmp_path, 3)


def test_work_that_makes_a_mark_of_its_own_is_a_reason_and_no_count(tmp_path):
    write(tmp_path, *[2045] * EMPTY, 1, 1, 1, 1)
    with pytest.raises(CountError, match="the work itself"):
        instructions(tmp_path, 3)


def test_every_counted_call_is_marked_alone_after_its_own_preparation(monkeypatch):
    seen = []
    monkeypatch.setattr("os.getsid", lambda _: seen.append("["))
    monkeypatch.setattr("os.getpgid", lambda _: seen.append("]"))
    mark_calls(
        lambda: seen.append("run"), lambda: seen.append("prepare"), lambda: seen.append("wait"), warm_up=1, count=2
    )
    call = ["prepare", "[", "run", "wait", "]"]
    assert seen == ["prepare", "run", "wait", *["[", "]"] * EMPTY, *call, *call]


def test_short_calls_are_warmed_as_often_as_python_needs_and_long_ones_hardly():
    assert calls_for(100) == (20, 5)
    assert calls_for(50_000_000) == (4, 3)
    assert calls_for(10**9) == (1, 2)


def test_without_valgrind_the_reason_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert callgrind.missing() == "valgrind is not installed (apt-get install valgrind)"


def test_where_addresses_cannot_be_fixed_it_counts_all_the_same(tmp_path, monkeypatch):
    def fails(command, **_):
        raise FileNotFoundError(command[0])

    callgrind._without_randomisation.cache_clear()
    monkeypatch.setattr("subprocess.run", fails)
    try:
        assert callgrind.randomised()
        assert prefix(tmp_path)[0] == "valgrind"
    finally:
        callgrind._without_randomisation.cache_clear()
