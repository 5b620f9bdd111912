"""The tables, in SQLAlchemy Core's terms; `migrations/` makes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa


class UtcTime(sa.types.TypeDecorator[datetime]):
    """A moment in UTC, with its zone on both ways; SQLite keeps none, so that any two compare as text."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """ValueError for a moment without a zone: whose noon it is cannot be guessed."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment without a time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """The moment with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = sa.MetaData()

decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("slice_id", sa.Text, primary_key=True),
    sa.Column("ts", UtcTime, nullable=False, index=True),
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
    sa.Index("ix_decisions_owner", "tenant", "principal"),
    sa.Index("ix_decisions_mask_digest", "mask_digest"),
)
"""One row a decision. `hashed`: its texts are salted hashes. `body`: the slice, zlib JSON, less what `masks` holds."""

masks = sa.Table(
    "masks",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""What a mask dropped, zlib JSON; written once, since thousands of decisions share it."""

outcomes = sa.Table(
    "outcomes",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("principal", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("ts", UtcTime, nullable=False, index=True),
    sa.Column("slice_id", sa.Text, nullable=False, index=True),
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
"""One row a reported call. `key` is the reporter's: a report that comes twice is one row. `tool_id` null: no call."""

spans = sa.Table(
    "spans",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("principal", sa.Text, primary_key=True),
    sa.Column("trace_id", sa.Text, primary_key=True),
    sa.Column("span_id", sa.Text, primary_key=True),
    sa.Column("ts", UtcTime, nullable=False, index=True),
    sa.Column("root", sa.Boolean, nullable=False),
    sa.Column("made", sa.Boolean, nullable=False),
    sa.Column("made_as", sa.Text),
    sa.Column("sealed", sa.Boolean, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Index("ix_spans_waiting", "made", "tenant", "principal", "trace_id", "ts", "root", "size"),
)
"""One row a span that an agent sent. `ts` is when it came; `made`: what its trace made stands in the other tables,
under ids that begin with `made_as`.

A row is let go of some time after that, so that what comes late or twice is still known for what it is.
"""

tickets = sa.Table(
    "tickets",
    metadata,
    sa.Column("ticket", sa.Text, primary_key=True),
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("expires", UtcTime, nullable=False, index=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("tool_id", sa.Text, nullable=False),
    sa.Column("arguments_hash", sa.Text, nullable=False),
    sa.Column("slice_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("decided_by", sa.Text),
    sa.Column("decided_at", UtcTime),
    sa.Column("used_at", UtcTime),
    sa.Column("note", sa.Text),
    sa.Index("ix_tickets_owner", "tenant", "principal"),
)
"""One row a call that waits for something. `ticket` is the sha256 of what the client holds."""

observations = sa.Table(
    "observations",
    metadata,
    sa.Column("handle", sa.Text, primary_key=True),
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("expires", UtcTime, nullable=False, index=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("slice_id", sa.Text, nullable=False),
    sa.Column("tool_id", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Index("ix_observations_owner", "tenant", "principal"),
)
"""One row a result kept whole for a while. `size` in characters, `body` zlib."""

cards = sa.Table(
    "cards",
    metadata,
    sa.Column("content", sa.Text, primary_key=True),
    sa.Column("tool_id", sa.Text, nullable=False, index=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""One row a version of a card. `content` is its content hash, `body` its JSON, zlib."""

card_events = sa.Table(
    "card_events",
    metadata,
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("ts", UtcTime, nullable=False),
    sa.Column("tool_id", sa.Text, nullable=False, index=True),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
)
"""One row a change of a version's state, in the order of `seq`; rows are added and never changed."""

catalog_versions = sa.Table(
    "catalog_versions",
    metadata,
    sa.Column("version", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("ts", UtcTime, nullable=False),
)
"""One row a version of the catalog that was handed out: what was approved after the event `seq`."""
