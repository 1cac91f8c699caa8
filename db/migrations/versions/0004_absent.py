"""Why an arm has no value of a metric; null where nothing is absent."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("arm", sa.Column("absent", sa.JSON(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("restore the copy that `bench db upgrade` made")
