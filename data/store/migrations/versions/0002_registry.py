"""The registry's tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables and their indexes."""
    op.create_table(
        "cards",
        sa.Column("content", sa.Text, primary_key=True),
        sa.Column("tool_id", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_cards_tool_id", "cards", ["tool_id"])
    op.create_table(
        "card_events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("ts", _MOMENT, nullable=False),
        sa.Column("tool_id", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("ix_card_events_tool_id", "card_events", ["tool_id"])
    op.create_table(
        "catalog_versions",
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("ts", _MOMENT, nullable=False),
    )
