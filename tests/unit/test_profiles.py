"""What differs between two sides' profiles: told from noise, drawn without loss, and what a profiler says of a call."""

import random
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.api import Skip, Work
from bench.measure.profiling import CProfiler, Watched, profile, start
from bench.profiles import Profile, compare_profiles, stacks_of_calls
from bench.profiling import SAMPLES_A_SECOND, samples_of
from bench.reports.flame import flame_page, flame_svg
from bench.reports.profile import profile_json, profile_text
from bench.testing import FakeDevice

BASE = {"run": 100.0, "shop.py:work": 600.0, "shop.py:rest": 300.0}


def pairs_of(base, head, *, repetitions=7, noise=0.01, counts=None, seed=1):
    """(pairs, without the profiler): frames under `run`, disturbed a little in each process."""
    rng = random.Random(seed)

    def made(times):
        own = {name: ns * rng.lognormvariate(0, noise) for name, ns in times.items()}
        stacks = {name if name == "run" else f"run;{name}": ns for name, ns in own.items()}
        return Profile(own=own, counts=(counts or {}).get(id(times), dict.fromkeys(times, 1.0)), stacks=stacks)

    pairs = [(made(base), made(head)) for _ in range(repetitions)]
    bare = [(0.8 * sum(b.own.values()), 0.8 * sum(h.own.values())) for b, h in pairs]
    return pairs, bare


def compare(pairs, bare, engine="cprofile"):
    return compare_profiles(pairs, bare, variant="demo.work", engine=engine, base="one", head="two")


def test_the_frame_that_became_slower_is_named_with_its_share_and_nothing_else():
    found = compare(*pairs_of(BASE, {**BASE, "shop.py:work": 720.0}))
    (frame,) = found.frames
    assert frame.name == "shop.py:work"
    assert frame.change.low < 0.12 < frame.change.high
    assert frame.base.value == pytest.approx(0.6, rel=0.02)
    assert found.quiet == 2
    assert found.total.low < 1.12 < found.total.high
    assert found.real.low < 1.12 < found.real.high


def test_frames_that_come_and_go_are_listed_largest_first():
    found = compare(*pairs_of(BASE, {"run": 100.0, "shop.py:new": 700.0, "shop.py:rest": 300.0}))
    assert [f.name for f in found.frames] == ["shop.py:new", "shop.py:work"]
    assert (found.frames[0].base.value, found.frames[1].head.value) == (0.0, 0.0)


def test_repetitions_that_differ_as_much_as_the_sides_list_nothing():
    """Of a hundred pairs of equal sides nearly none has a frame: the share of false names is held."""
    named = [compare(*pairs_of(BASE, dict(BASE), noise=0.1, seed=seed)).frames for seed in range(100)]
    assert sum(map(bool, named)) <= 10


def test_a_call_that_is_made_more_often_is_listed_however_noisy_the_clock():
    head = dict(BASE)
    counts = {id(BASE): {"shop.py:work": 100.0}, id(head): {"shop.py:work": 105.0}}
    found = compare(*pairs_of(BASE, head, noise=0.5, counts=counts))
    (frame,) = (f for f in found.frames if f.name == "shop.py:work")
    assert (frame.base_count, frame.head_count) == (100.0, 105.0)
    assert "100 → 105" in profile_text(found)


def test_a_profile_of_nothing_is_refused():
    nothing = Profile(own={}, counts={}, stacks={})
    with pytest.raises(ValueError, match="without time"):
        compare([(nothing, nothing)], [(1.0, 1.0)])
    with pytest.raises(ValueError, match="without time"):
        compare([], [])


def test_a_profiler_that_turns_the_difference_round_is_told():
    pairs, _ = pairs_of(BASE, {**BASE, "shop.py:work": 900.0})
    faster = [(100.0, 73.0 + i % 2) for i in range(len(pairs))]
    assert any("inflates" in note for note in compare(pairs, faster).notes)
    assert compare(pairs, faster, engine="py-spy").notes == ()
    assert compare(*pairs_of(BASE, {**BASE, "shop.py:work": 900.0})).notes == ()


def test_a_call_graph_becomes_stacks_split_over_the_callers_as_they_were_seen():
    own = {"run": 10.0, "a": 20.0, "b": 30.0, "shared": 40.0}
    edges = [("run", "a", 30.0), ("run", "b", 60.0), ("a", "shared", 10.0), ("b", "shared", 30.0)]
    assert stacks_of_calls(own, edges) == pytest.approx(
        {"run": 10.0, "run;a": 20.0, "run;b": 30.0, "run;a;shared": 10.0, "run;b;shared": 30.0}
    )


def test_recursion_ends_in_the_frame_that_it_comes_back_to():
    stacks = stacks_of_calls({"run": 1.0, "f": 6.0, "g": 3.0}, [("run", "f", 9.0), ("f", "g", 5.0), ("g", "f", 2.0)])
    assert set(stacks) == {"run", "run;f", "run;f;g"}
    assert sum(stacks.values()) == pytest.approx(10.0)


@given(st.data())
def test_a_tree_of_calls_keeps_its_whole_time(data):
    """Where nothing is shared, nothing is lost, however deep."""
    count = data.draw(st.integers(1, 25))
    own = {str(i): data.draw(st.floats(1, 100)) for i in range(count)}
    parent = {str(i): str(data.draw(st.integers(0, i - 1))) for i in range(1, count)}
    below = dict(own)
    for i in range(count - 1, 0, -1):
        below[parent[str(i)]] += below[str(i)]
    stacks = stacks_of_calls(own, [(parent[n], n, below[n]) for n in parent], least=0.0)
    assert sum(stacks.values()) == pytest.approx(sum(own.values()))
    assert {stack.rpartition(";")[2]: ns for stack, ns in stacks.items()} == pytest.approx(own)


def test_the_tree_sums_up_and_is_drawn_whole_without_asking_the_world():
    name = 'shop.py:"<&>\u2028'
    found = compare(*pairs_of({**BASE, name: 50.0}, {**BASE, name: 90.0}, seed=2))
    (run,) = found.tree.children
    assert run.base_ns == pytest.approx(found.base_ns)
    assert [child.name for child in run.children] == sorted(["shop.py:work", "shop.py:rest", name])
    svg = ElementTree.fromstring(flame_svg(found))
    space = "{http://www.w3.org/2000/svg}"
    titles = [g.find(f"{space}title").text for g in svg.iter(f"{space}g")]
    assert len(titles) == 5
    assert any(title.startswith(f"▲ {name}") for title in titles)
    colours = {g.get("data-n"): g.find(f"{space}rect").get("fill") for g in svg.iter(f"{space}g")}
    assert colours["shop.py:work"] == "#d9d9d9"
    assert colours[name].startswith("#ff")
    page = flame_page(found)
    assert page.count("http") == 1  # the name of SVG itself
    assert "src=" not in page


def test_what_is_too_narrow_to_matter_is_no_branch():
    found = compare(*pairs_of({**BASE, "dust": 0.5}, {**BASE, "dust": 0.5}))
    assert "dust" not in {child.name for child in found.tree.children[0].children}


def test_the_document_has_every_frame_and_the_tree():
    found = compare(*pairs_of(BASE, {**BASE, "shop.py:work": 720.0}))
    document = profile_json(found)
    assert '"schema": "bench-profile"' in document
    assert '"name": "shop.py:work"' in document
    assert document.count('"children"') == 4


# Profilers


def leaf():
    return sum(range(50))


def work():
    return [leaf() for _ in range(20)]


def test_pythons_profiler_counts_calls_and_leaves_the_harness_out():
    seen = CProfiler()
    profile(seen, Work(run=work), FakeDevice(), 3)
    answer = seen.end()
    named = {name.rpartition(":")[2]: name for name in answer["self"]}
    assert answer["counts"][named["leaf"]] == 60
    assert answer["counts"]["<built-in method builtins.sum>"] == 60
    assert not any("measure/profiling" in name or "disable" in name for name in answer["self"])
    assert [named["leaf"], "<built-in method builtins.sum>"] in [edge[:2] for edge in answer["edges"]]


def test_what_prepares_a_call_is_not_in_its_profile():
    seen = CProfiler()
    profile(seen, Work(run=work, prepare=leaf), FakeDevice(), 2)
    counts = seen.end()["counts"]
    assert next(n for name, n in counts.items() if name.endswith(":leaf")) == 40


def test_a_call_that_cannot_be_repeated_is_not_profiled():
    with pytest.raises(Skip, match="once"):
        profile(Watched(), Work(run=work, once=True), FakeDevice(), 1)


def test_pytorch_tells_its_operators(tmp_path):
    torch = pytest.importorskip("torch")
    seen = start("torch", str(tmp_path))
    matrix = torch.ones(8, 8)
    profile(seen, Work(run=lambda: torch.nn.functional.softmax(matrix @ matrix, dim=0)), FakeDevice(), 3)
    answer = seen.end()
    assert answer["counts"]["aten::mm"] == 3
    assert "aten::matmul;aten::mm" in answer["stacks"]


def test_onnx_runtime_tells_the_nodes_of_the_calls_alone(tmp_path, monkeypatch):
    """Warm-up is not counted; a session that was there before is not touched."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    numpy = pytest.importorskip("numpy")
    helper = onnx.helper
    value = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4]) for n in ("x", "y")]
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["a"], name="first"), helper.make_node("Neg", ["a"], ["y"], name="second")],
        "g", value[:1], value[1:],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    monkeypatch.setattr(runtime.InferenceSession, "__init__", runtime.InferenceSession.__init__)  # to be put back
    seen = start("onnxruntime", str(tmp_path / "files"))
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    call = Work(run=lambda: session.run(None, {"x": numpy.ones(4, "float32")}))
    for _ in range(5):
        call.run()
    profile(seen, call, FakeDevice(), 3)
    call.run()
    answer = seen.end()
    assert answer["counts"] == {"Exp": 3, "Neg": 3}
    assert set(answer["stacks"]) == {"Exp;first", "Neg;second"}
    assert all(ns >= 0 for ns in answer["self"].values())


def test_pyspys_samples_count_under_the_work_alone():
    ours = "main (bench/measure/worker.py:9);Watched.run (bench/measure/profiling.py:75)"
    calls = "repeatedly (bench/measure/profiling.py:65)"
    text = (
        f"{ours};{calls};work (shop/__init__.py:4);sum (libpython3.11.so) 30\n"
        f"{ours};{calls};work (shop/__init__.py:9) 10\n"
        "main (bench/measure/worker.py:9);receive (bench/measure/channel.py:40) 500\n"
    )
    answer = samples_of(text)
    unit = 1_000_000_000 // SAMPLES_A_SECOND
    assert answer["self"] == {"libpython3.11.so:sum": 30 * unit, "shop/__init__.py:work": 10 * unit}
    assert answer["stacks"]["shop/__init__.py:work;libpython3.11.so:sum"] == 30 * unit
