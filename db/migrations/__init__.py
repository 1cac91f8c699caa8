"""Alembic scripts; run through `db.schema.upgrade`, never by the alembic command."""
