"""`bench profile` on a real repository: the function that a commit added is named, and drawn."""

import json
from xml.etree import ElementTree

from bench.errors import Exit

SLOW = """
    def check(number):
        return sum(number % k for k in range(1, 40))

    def work():
        return sum(check(i) + i * i % 7 for i in range(200))
"""
FAST = "def work():\n    return sum(i * i % 7 for i in range(200))\n"


def test_the_function_that_a_commit_added_is_named_and_drawn(project):
    project.write("src/shop.py", FAST)
    project.commit("fast")
    project.write("src/shop.py", SLOW)
    project.commit("slow")
    short = ("shopping.work", "--repetitions", "3", "--seconds", "0.01")
    out, err = project("profile", "HEAD~1", "HEAD", *short, "--json", "--output", "flame.svg")
    document = json.loads(out)
    frames = {frame["name"]: frame for frame in document["frames"]}
    assert frames["shop.py:check"]["head_count"] == 200
    assert frames["shop.py:check"]["base_count"] == 0
    assert document["real"]["low"] > 1.5
    assert "flame graph in flame.svg" in err
    svg = ElementTree.fromstring((project.folder / "flame.svg").read_text())
    assert any("shop.py:check" in (title.text or "") for title in svg.iter("{http://www.w3.org/2000/svg}title"))


def test_what_cannot_be_profiled_is_one_sentence(project):
    project.branch("broken", src__shop="def work():\n    raise ValueError('no stock')\n")
    out, err = project("profile", "main", "broken", "shopping.work", code=Exit.FAILED)
    assert (out, "raised in head (first_call): ValueError: no stock" in err.splitlines()[-1]) == ("", True)
    project.sentence("profile", "main", "broken", "shopping.work", "--output", "x.png", code=Exit.USAGE)
