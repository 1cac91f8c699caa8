"""Pure statistics: no I/O, no model types. Each method is tested against a slow literal definition."""
