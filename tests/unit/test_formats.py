"""Files of other tools become runs; what is hostile, damaged or unclear becomes one sentence."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import FormatError, UsageError
from bench.formats import all_formats, format_named
from bench.formats._build import Supplied, build
from bench.formats._read import Reader, Reading, Refusal, files_in, recognise, records
from bench.formats._record import UNKNOWN_MACHINE, Imported, Outcome
from bench.formats._upload import MAX_BYTES, Upload
from bench.formats._values import gib, moment, number, once, quantity, raw_times, whole
from bench.metrics import TIME, Better, Kind
from bench.model import Measurement, Revision
from bench.wire import decode_run, encode_run

SAMPLES = Path(__file__).parents[1] / "formats"
FORMATS = {form.name: form for form in all_formats()}
FILES = sorted(path for path in SAMPLES.rglob("*") if path.is_file())
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def sample_id(path):
    return str(path.relative_to(SAMPLES))


def upload_of(text, name="x.json"):
    return Upload(name, text if isinstance(text, bytes) else text.encode())


def outcome_of(value=1.0, **words):
    return Outcome(**{"benchmark": "a.b", "measurements": (once(TIME, value),), **words})


def run_of(found=None, supplied=None, **words):
    found = found or Imported(tool="t", outcomes=(outcome_of(),), **words)
    return build(found, "test", NOW, supplied or Supplied())


# Recognising


@pytest.mark.parametrize("path", FILES, ids=sample_id)
def test_a_sample_is_claimed_by_its_own_format_and_no_other(path):
    from bench.formats._read import open_upload

    found = recognise(open_upload(path, {}), tuple(FORMATS.values()))
    assert not isinstance(found, Refusal), found
    assert found.name == path.relative_to(SAMPLES).parts[0]


def test_every_format_has_samples_and_a_row_in_the_reference():
    assert {path.name for path in SAMPLES.iterdir()} == FORMATS.keys()
    reference = (SAMPLES.parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    table = reference.partition("## Formats\n")[2].partition("\n## ")[0]
    assert {f"`{name}`" for name in FORMATS} == set(re.findall(r"^\| (`[\w-]+`) ", table, flags=re.M))


def test_what_two_formats_claim_is_refused_with_their_names():
    class Greedy:
        name = title = "greedy"

        def sniff(self, upload):
            return True

    found = recognise(upload_of((SAMPLES / "jmh" / "output.json").read_bytes()), (*FORMATS.values(), Greedy()))
    assert found == Refusal(file="x.json", reason="could be jmh, greedy; say which with --format", foreign=False)


@pytest.mark.parametrize("text", ["{}", "[]", "hello", "a,b\n1,2\n", '{"results": []}', '{"benchmarks": 3}', "[[1]]"])
def test_what_no_format_claims_is_unknown(text):
    assert recognise(upload_of(text), tuple(FORMATS.values())).foreign


def test_a_format_can_be_forced_and_an_unknown_one_is_named():
    assert format_named("jmh").name == "jmh"
    with pytest.raises(UsageError, match="no format 'jhm'; there are asv"):
        format_named("jhm")


# Hostile content

HOSTILE = {
    "cut short": ('{"benchmarks": [', "not JSON"),
    "a zip archive": (b"PK\x03\x04" + bytes(20), "zip archive"),
    "gzip": (b"\x1f\x8b\x08\x00abc", "compressed"),
    "binary": (b"\xff\xfe\x00{}", "no UTF-8"),
    "NUL": (b'{"a": "\x00"}', "NUL"),
    "empty": (b" \n", "empty"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "deep and closed": ('{"a":' * 50_000 + "1" + "}" * 50_000, "nested too deeply"),
    "the same key twice": ('{"a": 1, "a": 2}', "'a' twice"),
    "half a surrogate pair": (r'{"a": "\ud800"}', "surrogate"),
    "a number of 5000 digits": ('{"a": ' + "9" * 5000 + "}", "too long"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content_is_refused_in_one_sentence(name):
    content, reason = HOSTILE[name]
    found = recognise(upload_of(content), tuple(FORMATS.values()))
    assert reason in found.reason
    assert "\n" not in found.reason
    assert len(found.reason) < 200


def test_a_byte_order_mark_is_no_obstacle():
    text = (SAMPLES / "hyperfine" / "output.json").read_bytes()
    assert recognise(upload_of(b"\xef\xbb\xbf" + text), tuple(FORMATS.values())).name == "hyperfine"


def test_a_file_over_the_limit_is_not_read(tmp_path):
    file = tmp_path / "huge.json"
    with file.open("wb") as writer:
        writer.truncate(MAX_BYTES + 1)
    (found,) = Reader(all_formats(), Supplied()).read([file])
    assert found.reason == "has 64 MiB; files over 64 MiB are not read"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, True, "1", None, [1]])
def test_what_is_no_finite_number_of_64_bits_is_no_measurement(value):
    with pytest.raises(FormatError, match="x is "):
        number(value, "x")
    with pytest.raises(FormatError):
        run_of(Imported(tool="t", outcomes=(outcome_of(value),)))


BAD_OUTCOMES = {
    "no results": ((), "no results"),
    "an empty name": ((outcome_of(benchmark=" "),), "is empty"),
    "a name of a page": ((outcome_of(benchmark="x" * 1001),), "1001 characters"),
    "NUL in a name": ((outcome_of(benchmark="a\0b"),), "NUL"),
    "NUL in a parameter": ((outcome_of(params={"a": "\0"}),), "NUL"),
    "no samples": ((outcome_of(measurements=(Measurement(metric=TIME, launches=((),)),)),), "no value of time"),
    "a negative time": ((outcome_of(-1.0),), "no time is negative"),
    "one metric twice": ((outcome_of(), outcome_of(2.0)), "a.b twice"),
}


@pytest.mark.parametrize("name", BAD_OUTCOMES)
def test_records_that_make_no_sense_are_refused(name):
    outcomes, reason = BAD_OUTCOMES[name]
    with pytest.raises(FormatError, match=reason):
        run_of(Imported(tool="t", outcomes=outcomes))


JSON_FILES = [path for path in FILES if path.suffix in (".json", ".jsonl")]
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]), st.just({}), st.just([[1]]),
    st.just(2**70), st.just("\0"), st.just({"": [None]}),
)  # fmt: skip


def read_all(data, path):
    """What the formats make of damaged bytes at the place of a sample: runs or refusals, never an exception."""
    from bench.formats._read import open_upload

    upload = Upload(str(path), data, open_upload(path, {}).beside)
    form = recognise(upload, tuple(FORMATS.values()))
    with suppress(FormatError):
        for record in records(upload, form) if not isinstance(form, Refusal) else ():
            run = record if not isinstance(record, Imported) else build(record, form.name, NOW, Supplied())
            assert decode_run(encode_run(run)) is not None


@settings(max_examples=150)
@given(data=st.data())
def test_no_damaged_byte_escapes_as_an_exception(data):
    path = data.draw(st.sampled_from(FILES))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    read_all(bytes(content), path)


@settings(max_examples=400)
@given(data=st.data())
def test_no_odd_value_in_place_of_another_escapes_as_an_exception(data):
    path = data.draw(st.sampled_from(JSON_FILES))
    text = path.read_text(encoding="utf-8")
    documents = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else None
    try:
        document = documents[0] if documents else json.loads(text)
    except json.JSONDecodeError:  # one object a line
        documents = [json.loads(line) for line in text.splitlines()]
        document = documents[-2]
    node = document
    while True:
        places = list(node) if isinstance(node, dict) else list(range(len(node)))
        place = data.draw(st.sampled_from(places))
        if not isinstance(node[place], dict | list) or not node[place] or data.draw(st.integers(0, 3)) == 0:
            break
        node = node[place]
    if isinstance(node, dict) and data.draw(st.booleans()):
        del node[place]
    else:
        node[place] = data.draw(ODD)
    written = "\n".join(map(json.dumps, documents)) if documents else json.dumps(document)
    read_all(written.encode(), path)


def test_a_number_of_combinations_that_fills_the_memory_is_refused(tmp_path):
    rows = {"a.time_x": [None, [["1"] * 1000] * 6, "v"]}
    document = {
        "commit_hash": "abc",
        "params": {},
        "results": rows,
        "version": 2,
        "result_columns": ["result", "params"],
    }
    (tmp_path / "x.json").write_text(json.dumps(document))
    (found,) = Reader(all_formats(), Supplied()).read([tmp_path / "x.json"])
    assert "results of a.time_x for 1000000000000000000 combinations" in found.reason


def test_a_neighbour_that_changed_is_read_again_by_the_next_reader(tmp_path):
    folder = tmp_path / "gerbil"
    folder.mkdir()
    result = folder / "result.json"
    result.write_text('{"commit_hash": "abc", "params": {}, "results": {"a.time_x": 1.0}, "version": 1}')
    for cpu in ("One", "Two"):
        (folder / "machine.json").write_text(json.dumps({"machine": "gerbil", "cpu": cpu, "version": 1}))
        (found,) = Reader(all_formats(), Supplied()).read([result])
        assert found.run.machine.cpu == cpu


# Building


def test_the_same_results_are_the_same_run_and_others_are_not():
    run = run_of(started_at=NOW, machine=replace(UNKNOWN_MACHINE, cpu="A"))
    again = run_of(started_at=NOW, machine=replace(UNKNOWN_MACHINE, cpu="A"))
    assert (run.key, run) == (again.key, again)
    assert re.fullmatch("[0-9a-f]{32}", run.key)
    others = [
        run_of(Imported(tool="t", outcomes=(outcome_of(2.0),))), run_of(machine=replace(UNKNOWN_MACHINE, cpu="B")),
        run_of(revision=Revision(commit="c")), run_of(requirements=("numpy==2",)), run_of(variables={"A": "1"}),
        run_of(Imported(tool="t", outcomes=(outcome_of(benchmark="a.c"),))), run_of(tool_version="2"), run_of(),
    ]  # fmt: skip
    assert len({run.key, *(other.key for other in others)}) == len(others) + 1


def test_a_description_and_the_time_of_the_file_do_not_make_another_run():
    first = run_of(Imported(tool="t", outcomes=(outcome_of(title="one"),)))
    later = build(Imported(tool="t", outcomes=(outcome_of(title="two"),)), "test", datetime.now(UTC), Supplied())
    assert first.key == later.key


def test_what_a_file_lacks_puts_its_run_into_quarantine_until_somebody_supplies_it():
    assert run_of().quarantine == ("commit", "machine", "tool version")
    run = run_of(supplied=Supplied(commit="abc", machine="lab-3", tool_version="2", branch="main"))
    assert run.quarantine == ()
    assert run.machine.named == "lab-3"
    assert (run.revision.commit, run.revision.branch) == ("abc", "main")
    assert run.environment.packages == {"t": "2"}


def test_what_is_supplied_does_not_overrule_the_file():
    told = Imported(
        tool="t", outcomes=(outcome_of(),), tool_version="1", revision=Revision(commit="own", branch="mine"),
        machine=replace(UNKNOWN_MACHINE, cpu="CPU"),
    )  # fmt: skip
    run = run_of(told, Supplied(commit="abc", machine="lab-3", tool_version="2", branch="main", committed_at=NOW))
    assert (run.revision.commit, run.revision.branch, run.revision.committed_at) == ("own", "mine", NOW)
    assert run.environment.packages == {"t": "1"}
    assert (run.machine.named, run.machine.tags) == (None, ("lab-3",))


def test_a_checkout_completes_short_commits():
    full = Revision(commit="abc" + "0" * 37, committed_at=NOW)
    known = Supplied(resolve=lambda text: full if text == "abc" else None)
    assert run_of(revision=Revision(commit="abc", branch="b"), supplied=known).revision == replace(full, branch="b")
    assert run_of(revision=Revision(commit="def"), supplied=known).revision == Revision(commit="def")


def test_a_run_without_a_date_says_where_its_date_comes_from():
    assert "started_at" in run_of().environment.settings
    dated = run_of(revision=Revision(commit="abc", committed_at=datetime(2025, 1, 1, tzinfo=UTC)))
    assert dated.started_at.year == 2025
    assert dated.environment.settings == {}


def test_variants_of_one_benchmark_are_one_experiment_with_its_axes():
    outcomes = (outcome_of(params={"n": 1}), outcome_of(params={"n": 2}), outcome_of(benchmark="c"))
    run = run_of(Imported(tool="t", outcomes=outcomes))
    assert [e.experiment.benchmark.axes for e in run.experiments] == [{"n": [1, 2]}, {}]


# Values


def test_units_become_ours():
    assert quantity("a", "ms")[0].unit == "ns"
    assert quantity("a", "ms")[1] == 1e6
    assert quantity("a", "MiB")[1] == 2**20
    assert quantity("a", "ops/s")[0].better is Better.HIGHER
    assert quantity("a", "MB/s")[0].unit == "MB/s"
    assert (quantity("a", "widgets")[0].kind, quantity("a", "")[0].unit) == (Kind.COUNT, "1")


def test_moments_are_aware_and_absurd_ones_are_refused():
    assert moment("2026-01-01T01:00:00+01:00", "d") == NOW
    assert moment("2026-01-01", "d") == NOW
    assert moment(1767225600000, "d", unit=1e-3) == NOW
    for absurd in ("soon", 1e300, float("nan"), {}, "2026-13-01"):
        with pytest.raises(FormatError):
            moment(absurd, "d")


def test_unknown_sizes_stay_unknown():
    assert (gib(0), gib(None), gib(8.2, 2**30)) == (None, None, 8)
    assert (whole("8"), whole("0"), whole("many"), whole(True), whole(2.5)) == (8, None, None, None, None)


def test_files_are_read_in_order_and_rooms_of_tools_are_left_alone(tmp_path):
    for name in ("b/2.json", "a/1.json", ".git/x.json", "node_modules/y.json", ".asv/z.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [str(p.relative_to(tmp_path)) for p in files_in(tmp_path)] == [".asv/z.json", "a/1.json", "b/2.json"]


def test_raw_times_are_one_launch():
    assert raw_times((1, 2)).launches == ((1, 2),)


def test_readings_name_their_files():
    path = SAMPLES / "jmh" / "output.json"
    (found,) = Reader(all_formats(), Supplied()).read([path])
    assert isinstance(found, Reading)
    assert (found.files, found.format, found.run.source) == ((str(path),), "jmh", "jmh")
