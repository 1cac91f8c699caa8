"""Which modules a discovery may leave out: held against trying every name."""

from fnmatch import fnmatchcase
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from bench.loaders.scope import left_out

LETTERS = "ab."
NAMES = ["".join(letters) for length in range(6) for letters in product(LETTERS, repeat=length)]


@given(st.text(LETTERS, min_size=1, max_size=4), st.text(LETTERS + "*?", min_size=1, max_size=5))
def test_a_suite_is_left_out_exactly_where_no_name_in_it_matches(suite, pattern):
    """A name need not be longer than the pattern, which has five places."""
    could = fnmatchcase(suite, pattern) or any(fnmatchcase(f"{suite}.{name}", pattern) for name in NAMES)
    assert left_out(suite, [pattern]) is not could


def test_without_patterns_nothing_is_left_out_and_one_of_several_is_enough():
    assert not left_out("quantization", [])
    assert not left_out("quantization", ["serving.*", "quant*"])
    assert left_out("quantization", ["serving.*", "quant.*"])
