"""`bench selftest` judges the gate on this machine, and every comparison says what came of it."""

import json

from bench.errors import Exit


def test_the_gate_is_believed_and_comparisons_say_its_false_alarm_rate(project):
    out, _ = project("compare", "main", "main", "shopping.work", "--launches", "6", "--measure-identical", "--json")
    assert "not measured on this machine yet: run `bench selftest`" in str(json.loads(out)["notes"])
    out, _ = project("selftest", "--quick", "selftest.interpreter", "--json")
    document = json.loads(out)
    assert (document["schema"], document["version"], document["mistakes"]) == ("bench-selftest", 1, [])
    assert [trial["percent"] for trial in document["trials"]] == [0, 10]
    assert document["trials"][1]["verdict"] == "regressed"
    assert document["trials"][1]["confirmed"] is True
    assert (document["rates"]["false_alarm"]["value"], document["rates"]["false_alarm"]["n"]) == (0.0, 1)
    runs = json.loads(project("show", "--list", "--json")[0])
    assert (runs[0]["key"], runs[0]["source"]) == (document["run"], "selftest")
    out, _ = project("compare", "main", "main", "shopping.work", "--launches", "6", "--measure-identical", "--json")
    (note,) = json.loads(out)["notes"]
    assert note.startswith("measured false-alarm rate of this gate on this machine: 0 of 1 comparisons")


def test_an_unknown_workload_is_one_sentence(bench):
    assert "selftest.interpreter" in bench.sentence("selftest", "selftest.interpreted", code=Exit.USAGE)
