"""ImportReport: what an import read, took, left out, and why."""

from __future__ import annotations

from pydantic import Field

from data.cards import Frozen


class ImportReport(Frozen):
    """Counts of one import. `read` = imported + everything in `skipped`, in the source's own units (lines, tools).

    `ignored` counts keys that nothing reads; `notes` are sentences for a person.
    """

    source: str
    format: str
    read: int
    imported: int
    skipped: dict[str, int] = Field(default_factory=dict)
    ignored: dict[str, int] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_text(self) -> str:
        """The report as a few lines."""
        lines = [f"{self.source} ({self.format}): {self.imported} of {self.read} imported"]
        lines += [f"  skipped {count}: {reason}" for reason, count in self.skipped.items()]
        if self.ignored:
            keys = ", ".join(f"{key} ({count})" for key, count in self.ignored.items())
            lines.append(f"  keys that were ignored: {keys}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])
