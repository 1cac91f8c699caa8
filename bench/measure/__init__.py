"""Measuring: the parent schedules and never times, a child measures and never decides."""
