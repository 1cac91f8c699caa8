"""Keeps runs in SQLite or PostgreSQL. Start at `db.store.open_store`; pages read through `db.queries`."""
