"""Raw samples come back bit for bit."""

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import StoreError
from db import codec

NUMBERS = st.one_of(
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), max_size=6),
    st.lists(st.lists(st.integers(1_000_000, 1_050_000), max_size=40), max_size=6),
    st.lists(st.lists(st.integers(0, 1), max_size=40), max_size=2),
    st.lists(st.lists(st.floats(allow_nan=False), max_size=20), max_size=6),
    st.lists(st.lists(st.one_of(st.integers(), st.floats(allow_nan=False)), max_size=20), max_size=6),
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(NUMBERS)
def test_every_value_and_its_type_survive(launches: list[list[int | float]]) -> None:
    """`repr` tells -0.0 from 0.0 and 1 from 1.0, which `==` does not."""
    assert repr(codec.decode(*codec.encode(launches))) == repr(tuple(tuple(launch) for launch in launches))


def test_nan_keeps_its_bits() -> None:
    (nan,) = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_1234))
    ((back, infinite),) = codec.decode(*codec.encode([[nan, -math.inf]]))
    assert struct.pack("<d", back) == struct.pack("<d", nan)
    assert infinite == -math.inf


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([5], "delta8"),
        ([0, 127], "delta8"),
        ([0, 128], "delta16"),
        ([0, -(2**15)], "delta16"),
        ([0, 2**31 - 1], "delta32"),
        ([0, 2**31], "delta64"),
        ([-(2**63), 2**63 - 1], "delta8"),  # the difference wraps round to -1
        ([2**63], "json"),
        ([1, 1.5], "json"),
        ([1.0], "float64"),
    ],
)
def test_the_narrowest_codec_is_taken(values: list[int | float], name: str) -> None:
    assert codec.encode([values])[0] == f"{name}-raw"
    assert codec.encode([[*values, *values[-1:] * 200]])[0] == name
    assert codec.decode(*codec.encode([values])) == (tuple(values),)


def test_times_take_less_than_half_of_raw() -> None:
    """2 ms with 1 % of spread, as a nightly run stores thousands of times."""
    import random

    rng = random.Random(1)
    launches = [[round(rng.gauss(2e6, 2e4)) for _ in range(40)] for _ in range(7)]
    assert len(codec.encode(launches)[1]) < 8 * 280 / 2


@pytest.mark.parametrize("length", [3, 300])
@pytest.mark.parametrize("cut", [0, 1, 8, -1])
def test_damage_is_an_error_and_never_other_numbers(length: int, cut: int) -> None:
    name, data = codec.encode([list(range(length)), [4]])
    assert name == ("delta8-raw" if length == 3 else "delta16")
    for damaged in (data[:cut], data[:-1] + bytes([data[-1] ^ 1])):
        with pytest.raises(StoreError, match="damaged"):
            codec.decode(name, damaged)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300), min_size=2, max_size=100))
def test_few_integers_are_encoded_as_many_are(values: list[int]) -> None:
    """Without numpy and with it: the same bytes."""
    few = codec.FEW
    try:
        codec.FEW = 1
        by_numpy = codec.encode([values])
        codec.FEW = 10**6
        assert codec.encode([values]) == by_numpy
    finally:
        codec.FEW = few


def test_an_unknown_codec_asks_for_an_upgrade() -> None:
    with pytest.raises(StoreError, match="upgrade bench"):
        codec.decode("delta128-raw", codec.encode([[1]])[1])


@settings(derandomize=True, deadline=None, max_examples=100)
@given(NUMBERS)
def test_what_was_reduced_says_so_and_comes_back(launches: list[list[int | float]]) -> None:
    counts = tuple(range(len(launches)))
    name, data = codec.encode_reduced(launches, counts)
    assert len(name) <= 16
    assert codec.counts(name, data) == counts
    assert repr(codec.decode(name, data)) == repr(tuple(tuple(launch) for launch in launches))
    assert codec.counts(*codec.encode(launches)) is None


@pytest.mark.parametrize("cut", [0, 3, 9, -1])
def test_damage_of_what_was_reduced_is_an_error(cut: int) -> None:
    name, data = codec.encode_reduced([[1.5], [2.5]], [40, 40])
    with pytest.raises(StoreError, match="damaged"):
        codec.decode(name, data[:cut])
