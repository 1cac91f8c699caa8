"""Reference networks with trained weights."""
