"""Registry: every version of every card that was ever offered, and who let which of them be shown.

Nothing is changed and nothing removed: each call adds events, and what is approved now is what they come to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import sqlalchemy as sa

from data.cards import ToolCard
from data.catalog import Catalog, card_json
from data.errors import InputError
from data.findings import Finding
from data.registry.approval import AutoApproval, objections
from data.registry.versions import Cause, Event, State, ToolVersions, content_of, folded
from data.store.database import Database
from data.store.registry_rows import add_rows, read_cards, read_events
from data.store.tables import card_events, catalog_versions

_ADVISORY_LOCK = 0x7265676973747279  # "registry" in ASCII


@dataclass(frozen=True)
class Offered:
    """What an import came to: how many tools of each fate, and the ids of those that wait for a person."""

    counts: dict[str, int]
    pending: tuple[str, ...]


@dataclass
class _Writing:
    """One transaction: the tools as they stand, and the events that it adds."""

    tools: dict[str, ToolVersions]
    who: str
    ts: datetime
    events: list[Event] = field(default_factory=list)

    def add(self, tool: ToolVersions, content: str, state: State, cause: Cause, note: str = "") -> None:
        """Add an event; a version that comes to be approved takes the place of the one that was."""
        if state is State.APPROVED:
            for other in [content for content, last in tool.states.items() if last.state is State.APPROVED]:
                self._append(tool, other, State.RETIRED, Cause.REPLACED, f"by {content[:12]}")
        self._append(tool, content, state, cause, note)

    def _append(self, tool: ToolVersions, content: str, state: State, cause: Cause, note: str) -> None:
        event = Event(0, self.ts, tool.tool_id, content, state, cause, self.who, tool.source, note)
        tool.states[content] = event
        self.events.append(event)


class Registry:
    """A registry in a database. Threads and processes may share it: writers wait for each other."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def offer(
        self,
        offered: Iterable[ToolCard],
        source: str,
        who: str,
        *,
        rules: AutoApproval | None = None,
        now: datetime | None = None,
    ) -> Offered:
        """Everything that `source` has now. New and changed cards wait, or are approved by a rule; a card that is
        no longer offered is retired; an approved card that went and comes back unchanged is approved again; a rejected
        version stays rejected.

        Raises InputError, and adds nothing, if a tool id belongs to another source.
        """
        own = {card.tool_id: card for card in offered}
        with self.database.writing() as connection:
            self._lock(connection)
            writing = _Writing(folded(read_events(connection)), who, now or datetime.now(UTC))
            _refuse_taken(own, source, writing.tools)
            counts: Counter[str] = Counter()
            fresh = [card for card in own.values() if self._settle(connection, card, source, writing, counts)]
            waiting = self._by_rules(connection, fresh, source, writing, rules, counts)
            for tool in writing.tools.values():
                if tool.source == source and tool.tool_id not in own:
                    counts["gone"] += tool.approved is not None
                    for content in tool.pending:
                        writing.add(tool, content, State.RETIRED, Cause.WITHDRAWN)
                    if tool.approved is not None:
                        writing.add(tool, tool.approved, State.RETIRED, Cause.GONE)
            add_rows(connection, own.values(), writing.events)
        return Offered(dict(counts), tuple(waiting))

    def approve(
        self, tool_id: str, content: str, who: str, *, note: str = "", despite: str = "", now: datetime | None = None
    ) -> Event:
        """Let a version be shown, in place of the one that is; an older one too, which rolls the tool back.

        `content` is the hash, or as much of its start as tells it apart. `despite` is the reason to overrule blocking
        findings. Raises InputError for a version that is not there or approved already, and for findings that nobody
        overrules.
        """
        with self.database.writing() as connection:
            self._lock(connection)
            writing = _Writing(folded(read_events(connection)), who, now or datetime.now(UTC))
            tool, whole = _version(writing.tools, tool_id, content)
            if tool.approved == whole:
                raise InputError(f"version {whole[:12]} is approved already", source=tool_id)
            if not despite:
                against = self._against(connection, writing, [whole])[tool_id]
                if against:
                    raise _objected(tool_id, against)
            writing.add(tool, whole, State.APPROVED, Cause.PERSON, "; ".join(part for part in (note, despite) if part))
            add_rows(connection, (), writing.events)
            return writing.events[-1]

    def approve_all(
        self, who: str, *, source: str | None = None, now: datetime | None = None
    ) -> tuple[list[str], dict[str, list[Finding]]]:
        """Approve everything that waits, of one source or of all, and that nothing speaks against.

        Gives the approved ids, and the blocking findings of those that wait on.
        """
        with self.database.writing() as connection:
            self._lock(connection)
            writing = _Writing(folded(read_events(connection)), who, now or datetime.now(UTC))
            waiting = [tool for tool in writing.tools.values() if tool.pending and source in {None, tool.source}]
            against = self._against(connection, writing, [tool.pending[-1] for tool in waiting])
            done = [tool for tool in waiting if not against[tool.tool_id]]
            for tool in done:
                writing.add(tool, tool.pending[-1], State.APPROVED, Cause.PERSON)
            add_rows(connection, (), writing.events)
        return [tool.tool_id for tool in done], {tool: found for tool, found in against.items() if found}

    def reject(self, tool_id: str, content: str, who: str, *, note: str = "", now: datetime | None = None) -> Event:
        """Never show a version: one that waits, or the one that is shown. Raises InputError as `approve`."""
        with self.database.writing() as connection:
            self._lock(connection)
            writing = _Writing(folded(read_events(connection)), who, now or datetime.now(UTC))
            tool, whole = _version(writing.tools, tool_id, content)
            if tool.states[whole].state is State.REJECTED:
                raise InputError(f"version {whole[:12]} is rejected already", source=tool_id)
            writing.add(tool, whole, State.REJECTED, Cause.PERSON, note)
            add_rows(connection, (), writing.events)
            return writing.events[-1]

    def shown(self) -> list[ToolCard]:
        """The approved cards, in the order of first approval; unlike a catalog handed out, this is not noted."""
        with self.database.engine.connect() as connection:
            return list(_shown(connection, folded(read_events(connection))).values())

    def waiting(self) -> list[ToolVersions]:
        """The tools with a version that waits, in the order in which they came."""
        with self.database.engine.connect() as connection:
            return [tool for tool in folded(read_events(connection)).values() if tool.pending]

    def tool(self, tool_id: str) -> ToolVersions:
        """The versions of one tool. Raises InputError for a tool that was never offered."""
        with self.database.engine.connect() as connection:
            tools = folded(read_events(connection, tool_id=tool_id))
        if tool_id not in tools:
            raise InputError(f"the registry has no tool '{tool_id}'", hint="check its spelling")
        return tools[tool_id]

    def history(self, tool_id: str) -> list[Event]:
        """Everything that happened to a tool, in order. Raises InputError for a tool that was never offered."""
        with self.database.engine.connect() as connection:
            events = read_events(connection, tool_id=tool_id)
        if not events:
            raise InputError(f"the registry has no tool '{tool_id}'", hint="check its spelling")
        return events

    def card(self, content: str) -> ToolCard:
        """The card of a version, by its whole content hash. Raises InputError for one that is not there."""
        with self.database.engine.connect() as connection:
            found = read_cards(connection, [content])
        if content not in found:
            raise InputError(f"the registry has no version {content[:12]}")
        return found[content]

    def catalog(self, version: str | None = None, *, now: datetime | None = None) -> Catalog:
        """What is approved, in the order of first approval; or what was, when the catalog had this `version`.

        Every version that is handed out is noted, and can be had again for ever. Raises InputError for a version that
        never was.
        """
        if version is not None:
            with self.database.engine.connect() as connection:
                seq = connection.scalar(sa.select(catalog_versions.c.seq).where(catalog_versions.c.version == version))
                if seq is None:
                    raise InputError(f"the registry never handed out version '{version}'", hint="see 'catalog history'")
                return _approved(connection, seq)
        with self.database.writing() as connection:
            self._lock(connection)
            last = connection.scalar(sa.select(sa.func.max(card_events.c.seq))) or 0
            current = _approved(connection, last)
            row = {"version": current.version, "seq": last, "ts": now or datetime.now(UTC)}
            connection.execute(self.database.insert_new(catalog_versions), row)
        return current

    def versions(self) -> list[tuple[str, datetime]]:
        """Every version of the catalog that was handed out, and when first, in that order."""
        with self.database.engine.connect() as connection:
            rows = connection.execute(sa.select(catalog_versions).order_by(catalog_versions.c.seq))
            return [(row.version, row.ts) for row in rows]

    def _settle(
        self, connection: sa.Connection, card: ToolCard, source: str, writing: _Writing, counts: Counter[str]
    ) -> bool:
        """Do what needs no decision with an offered card; True where it needs one."""
        content = content_of(card)
        tool = writing.tools.setdefault(card.tool_id, ToolVersions(card.tool_id, source))
        for other in tool.pending:
            if other != content:
                writing.add(tool, other, State.RETIRED, Cause.WITHDRAWN)
        last = tool.states.get(content)
        if last is None and tool.approved is not None and _equal(read_cards(connection, [tool.approved]), card):
            counts["unchanged"] += 1
            return False
        returns = last is not None and last.cause is Cause.GONE and tool.approved is None
        if last is None or (last.state is State.RETIRED and not returns):
            counts["new" if tool.first_approved is None else "changed"] += 1
            writing.add(tool, content, State.PENDING, Cause.IMPORTED)
            return True
        if last.state is State.PENDING:
            counts["still waiting"] += 1
            return True
        if last.state is State.RETIRED:
            counts["returned"] += 1
            writing.add(tool, content, State.APPROVED, Cause.RETURNED)
        else:
            counts["unchanged" if last.state is State.APPROVED else "rejected before"] += 1
        return False

    def _by_rules(
        self,
        connection: sa.Connection,
        fresh: Sequence[ToolCard],
        source: str,
        writing: _Writing,
        rules: AutoApproval | None,
        counts: Counter[str],
    ) -> list[str]:
        """Approve what a rule approves; the ids of what waits on."""
        if rules is None or not rules.auto_approve:
            return [card.tool_id for card in fresh]
        against = objections(fresh, _shown(connection, writing.tools).values())
        waiting = []
        for card in fresh:
            tool = writing.tools[card.tool_id]
            rule = rules.rule_for(card, source, tool.first_approved is not None, against[card.tool_id])
            if rule is None:
                waiting.append(card.tool_id)
            else:
                counts["approved by a rule"] += 1
                writing.add(tool, content_of(card), State.APPROVED, Cause.RULE, rule.name)
        return waiting

    def _against(
        self, connection: sa.Connection, writing: _Writing, contents: Sequence[str]
    ) -> dict[str, list[Finding]]:
        proposed = read_cards(connection, contents)
        return objections(proposed.values(), _shown(connection, writing.tools).values())

    def _lock(self, connection: sa.Connection) -> None:
        if self.database.dialect == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})


def _equal(stored: dict[str, ToolCard], card: ToolCard) -> bool:
    """Whether the one stored card says the same: it may have been hashed when cards had fewer fields."""
    return any(card_json(one) == card_json(card) for one in stored.values())


def _refuse_taken(own: Iterable[str], source: str, tools: dict[str, ToolVersions]) -> None:
    taken = [tools[tool_id] for tool_id in own if tool_id in tools and tools[tool_id].source != source]
    if taken:
        named = ", ".join(f"'{tool.tool_id}' of {tool.source}" for tool in taken[:3]) + (
            ", ..." if len(taken) > 3 else ""
        )
        hint = "give the server another name, or the source its old one"
        raise InputError(f"{len(taken)} tool ids belong to another source, such as {named}", source=source, hint=hint)


def _version(tools: dict[str, ToolVersions], tool_id: str, content: str) -> tuple[ToolVersions, str]:
    """The tool, and the whole hash of the one version that begins with `content`."""
    tool = tools.get(tool_id)
    if tool is None:
        raise InputError(f"the registry has no tool '{tool_id}'", hint="check its spelling")
    found = [whole for whole in tool.states if content and whole.startswith(content)]
    if len(found) != 1:
        problem = f"several versions begin with '{content}'" if found else f"it has no version '{content}'"
        raise InputError(problem, source=tool_id, hint="see 'catalog history'")
    return tool, found[0]


def _objected(tool_id: str, against: list[Finding]) -> InputError:
    said = "; ".join(f"{finding.rule}: {finding.message}" for finding in against)
    return InputError(f"lint speaks against it: {said}", source=tool_id, hint="overrule it with a reason, or reject it")


def _shown(connection: sa.Connection, tools: dict[str, ToolVersions]) -> dict[str, ToolCard]:
    """The approved cards by tool id, as far as they are stored, in the order of first approval."""
    placed = sorted((tool.first_approved or 0, tool.approved) for tool in tools.values() if tool.approved is not None)
    found = read_cards(connection, [content for _, content in placed])
    return {found[content].tool_id: found[content] for _, content in placed if content in found}


def _approved(connection: sa.Connection, until: int) -> Catalog:
    return Catalog(_shown(connection, folded(read_events(connection, until=until))).values())
