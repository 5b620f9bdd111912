"""Spans that wait for the rest of their trace."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table and its indexes."""
    op.create_table(
        "spans",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("principal", sa.Text, primary_key=True),
        sa.Column("trace_id", sa.Text, primary_key=True),
        sa.Column("span_id", sa.Text, primary_key=True),
        sa.Column("ts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("root", sa.Boolean, nullable=False),
        sa.Column("made", sa.Boolean, nullable=False),
        sa.Column("made_as", sa.Text),
        sa.Column("sealed", sa.Boolean, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_spans_ts", "spans", ["ts"])
    op.create_index("ix_spans_waiting", "spans", ["made", "tenant", "principal", "trace_id", "ts", "root", "size"])
