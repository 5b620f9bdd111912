"""Migrating: bring a database's tables to this version's form, also when several replicas start at once."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from data.store.errors import StoreError

_SCRIPTS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x746F6F6C63726962  # "toolcrib" in ASCII

_alembic = Lock()  # its `op` and `context` belong to the process, not to a thread


def upgrade(connection: sa.Connection) -> None:
    """Run what is missing, in the transaction that `connection` has open; a second replica waits for the first.

    The transaction must hold SQLite's write lock already. Raises StoreError for a database of a newer version.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    config = Config(attributes={"connection": connection})
    # a '%' in the path of the installation would be an interpolation of the config file's form
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)
    with _alembic:
        at = MigrationContext.configure(connection).get_current_revision()
        known = [step.revision for step in script.walk_revisions()]
        if at is not None and at not in known:
            raise StoreError(
                f"the database has tables of version {at}, and this version knows {known[0]} at most;"
                " upgrade toolcrib, or give another database"
            )
        if at != known[0]:
            command.upgrade(config, "head")
