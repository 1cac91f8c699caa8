"""The program that scores the change detection."""

import json

import numpy as np
import pytest

from bench.detect import HISTORY
from benchmarks.detection import Marked, Score, main, matched, point_by_point, read, whole


def step(at=60, n=120):
    rng = np.random.default_rng(1)
    return np.where(np.arange(n) < at, 100.0, 110.0) * np.exp(0.01 * rng.standard_normal(n))


def test_each_mark_is_matched_once_and_to_its_nearest():
    assert matched([10], [9, 11], 5) == {10: 9}
    assert matched([10, 12], [11], 5) == {10: 11}
    assert matched([10], [16], 5) == {}


def test_a_found_step_is_right_a_missed_one_missed_and_an_unmarked_one_wrong():
    assert (s := whole([Marked(values=step(), change_points=(60,))], HISTORY)).right == 1
    assert s.f1 == 1.0
    assert whole([Marked(values=np.ones(50), change_points=(20,))], HISTORY).missed == 1
    assert whole([Marked(values=step())], HISTORY).wrong == 1
    assert whole([Marked(values=step(), ignore=((50, 70),))], HISTORY).wrong == 0
    assert Score().f1 == 1.0


def test_point_by_point_counts_the_delay_from_the_first_changed_point():
    score = point_by_point([Marked(values=step(), change_points=(60,))], HISTORY)
    assert (score.right, score.wrong, score.missed) == (1, 0, 0)
    assert 3 <= score.delays[0] <= 8


def test_it_prints_scores_of_marked_histories(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.detection.speed", lambda n: 1000.0)
    file = tmp_path / "marked.json"
    file.write_text(json.dumps({"series": [{"values": list(step()), "change_points": [60]}]}))
    assert read(file)[0].change_points == (60,)
    assert main(["--histories", str(file)]) == 0
    out = capsys.readouterr().out
    assert "1 histories, 120 points, 1 marks" in out
    assert "history, point by point" in out


def test_it_prints_made_up_histories(capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.detection.speed", lambda n: 1000.0)
    assert main(["--count", "3"]) == 0
    assert "false 0.00" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "[]", '{"series": [{"values": [1]}]}', '{"series": [{"values": "x"}]}'])
def test_another_file_is_refused_in_one_sentence(tmp_path, capsys, content):
    file = tmp_path / "marked.json"
    file.write_text(content)
    assert main(["--histories", str(file)]) == 2
    assert "no marked histories" in capsys.readouterr().err
