"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables and their indexes."""
    op.create_table(
        "decisions",
        sa.Column("slice_id", sa.Text, primary_key=True),
        sa.Column("ts", _MOMENT, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("trace_id", sa.Text, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("catalog_version", sa.Text, nullable=False),
        sa.Column("bundle_version", sa.Text, nullable=False),
        sa.Column("policy_version", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("goal", sa.Text, nullable=False),
        sa.Column("hashed", sa.Boolean, nullable=False),
        sa.Column("mutation", sa.Boolean),
        sa.Column("embedding", sa.LargeBinary),
        sa.Column("mask_digest", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_decisions_ts", "decisions", ["ts"])
    op.create_index("ix_decisions_owner", "decisions", ["tenant", "principal"])
    op.create_index("ix_decisions_mask_digest", "decisions", ["mask_digest"])
    op.create_table(
        "masks",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "outcomes",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("principal", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("ts", _MOMENT, nullable=False),
        sa.Column("slice_id", sa.Text, nullable=False),
        sa.Column("tool_id", sa.Text),
        sa.Column("trace_id", sa.Text, nullable=False),
        sa.Column("step", sa.BigInteger),
        sa.Column("arguments", sa.Text),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("error_class", sa.Text, nullable=False),
        sa.Column("latency_ms", sa.Double),
        sa.Column("cost_usd", sa.Double),
        sa.Column("task_success", sa.Boolean),
        sa.Column("dry_run", sa.Boolean, nullable=False),
        sa.Column("ticket", sa.Text),
    )
    op.create_index("ix_outcomes_ts", "outcomes", ["ts"])
    op.create_index("ix_outcomes_slice_id", "outcomes", ["slice_id"])
    op.create_table(
        "tickets",
        sa.Column("ticket", sa.Text, primary_key=True),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("tool_id", sa.Text, nullable=False),
        sa.Column("arguments_hash", sa.Text, nullable=False),
        sa.Column("slice_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("decided_by", sa.Text),
        sa.Column("decided_at", _MOMENT),
        sa.Column("used_at", _MOMENT),
        sa.Column("note", sa.Text),
    )
    op.create_index("ix_tickets_expires", "tickets", ["expires"])
    op.create_index("ix_tickets_owner", "tickets", ["tenant", "principal"])
    op.create_table(
        "observations",
        sa.Column("handle", sa.Text, primary_key=True),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("expires", _MOMENT, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("slice_id", sa.Text, nullable=False),
        sa.Column("tool_id", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_observations_expires", "observations", ["expires"])
    op.create_index("ix_observations_owner", "observations", ["tenant", "principal"])
