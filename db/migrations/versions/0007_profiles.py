"""Profiles are kept with their change points; a proof that was taken and forgotten can be taken again."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("proof_request", sa.Column("taken_at", sa.DateTime(timezone=True)))
    op.create_table(
        "profile",
        sa.Column("change", sa.Text, nullable=False),
        sa.Column("engine", sa.String(32), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("change", "engine", name="pk_profile"),
    )


def downgrade() -> None:
    raise NotImplementedError("restore the copy that `bench db upgrade` made")
