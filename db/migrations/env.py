"""Alembic's entry: runs in the connection that db.schema hands over, in its transaction."""

from alembic import context

from db.tables import VERSION_TABLE, metadata

connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("run `bench db upgrade`: the alembic command alone does not know the database")
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
