"""Work that never changes: what tells a machine that moved from code that did."""
