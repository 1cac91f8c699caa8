"""A stored gate run and the command that repeats it."""

import shlex
from dataclasses import replace

import pytest

from bench.model import Revision, Target
from bench.rereading import command_of, side_of
from bench.testing import make_pair, make_run

COMMIT = "3a65fa9c1d2e44b7a8e05f60718293a4b5c6d7e8"
CLEAN = Revision(commit=COMMIT)


@pytest.mark.parametrize(
    ("target", "side"),
    [
        (Target(label="main (3a65fa9)", revision=CLEAN), "3a65fa9c1d2e"),
        (Target(label="3a65fa9 env:OMP_NUM_THREADS=2", revision=CLEAN), "3a65fa9c1d2e env:OMP_NUM_THREADS=2"),
        (Target(label=". (3a65fa9+9f8e7d6)", revision=replace(CLEAN, dirty=True)), "."),
        (Target(label="onnxruntime==1.31.1"), "onnxruntime==1.31.1"),
        (Target(label="env:A=1 again"), "env:A=1"),
    ],
)
def test_a_side_can_be_typed_again(target, side):
    assert side_of(target) == side


def test_the_command_names_both_sides_and_what_was_measured():
    base, head = Target(label="main (3a65fa9)", revision=CLEAN), Target(label="onnxruntime==1.31.1 env:A=1")
    pairs = [make_pair(name=name, base=base, head=head) for name in ("s.one", "s.two", "s.one")]
    words = shlex.split(command_of(replace(make_run(), experiments=tuple(pairs))))
    assert words == ["bench", "compare", "3a65fa9c1d2e", "onnxruntime==1.31.1 env:A=1", "s.one", "s.two"]
    assert command_of(make_run()) == ""
