"""Stored runs for other tools: a table of samples (`table`), and the files of pyperf and asv.

No other format carries all that a run holds; what is left out of it is said, one sentence a matter.
"""
