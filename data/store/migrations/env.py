"""How Alembic runs here: on the connection that `migrating.upgrade` hands over, inside its transaction."""

from __future__ import annotations

from alembic import context

from data.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # the caller holds one transaction over all of it, on both dialects: all steps happen, or none
    transactional_ddl=True,
)
context.run_migrations()
