"""Runs whose raw samples were reduced."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("run", sa.Column("reduced_sha", sa.String(64), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("restore the copy that `bench db upgrade` made")
