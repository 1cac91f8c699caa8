"""Foreign keys that only slow down what cannot go wrong.

A measurement's series and metric, and a sample's measurement, are written in the statement before
and never deleted. PostgreSQL spent more time on checking them, row by row, than on storing rows.
"""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    with op.batch_alter_table("measurement") as measurement:
        measurement.drop_constraint("fk_measurement_series_id", type_="foreignkey")
        measurement.drop_constraint("fk_measurement_metric_id", type_="foreignkey")
    with op.batch_alter_table("sample") as sample:
        sample.drop_constraint("fk_sample_run_id_arm_position", type_="foreignkey")


def downgrade() -> None:
    raise NotImplementedError("restore the copy that `bench db upgrade` made")
