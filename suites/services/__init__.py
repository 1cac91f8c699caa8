"""Real servers for suites: the one whose address is given, else one that answers here, else a private one.

Every server module has the same three parts: what `open` takes and in which order, a handle with a
name of its own for what it stores (a database, a key prefix, a topic), and `close`, which removes
that and ends what was started. Where nothing can be had, `open` raises Skip with the way to get it.
"""
