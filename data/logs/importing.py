"""An import from end to end: sources found, form told, read as a stream, made into traces, accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data.catalog import Catalog
from data.errors import InputError
from data.logs.account import Account
from data.logs.chat import chat_decisions
from data.logs.distinct import Counted
from data.logs.events import Decision
from data.logs.files import find, opened
from data.logs.forms import is_database, told_form, values
from data.logs.json_stream import Record
from data.logs.langfuse import langfuse_decisions
from data.logs.langsmith import langsmith_decisions
from data.logs.mcp_proxy import mcp_decisions
from data.logs.mlflow_store import is_store, stored_traces
from data.logs.mlflow_traces import mlflow_decisions
from data.logs.names import Mapped, Names, load_mapping
from data.logs.otel import otel_decisions
from data.logs.outcomes import Judge
from data.logs.plain import bfcl_traces, plain_traces
from data.logs.report import SHOWN, LogReport, report
from data.logs.tally import Tally
from data.logs.to_traces import Maker
from data.traces import Trace

Reader = Callable[[Iterable[Record], Account], Iterator[Decision]]

READERS: dict[str, Reader] = {
    "otel": otel_decisions,
    "mlflow": mlflow_decisions,
    "openai": chat_decisions,
    "anthropic": chat_decisions,
    "langsmith": langsmith_decisions,
    "langfuse": langfuse_decisions,
    "mcp": mcp_decisions,
}
"""Forms whose files are JSON, each with what makes decisions of the values."""

FORMATS = ("auto", "jsonl", *READERS, "bfcl")


@dataclass
class LogImport:
    """A running import: `traces` can be gone through once, and `report` is complete after that."""

    format: str
    sources: tuple[str, ...]
    catalog: Catalog
    names: Names
    judge: Judge
    redact: bool
    account: Account = field(default_factory=Account)
    tally: Tally = field(default_factory=Tally)
    ignored: Counted = field(default_factory=Counted)

    def traces(self) -> Iterator[Trace]:
        """The traces, as a stream.

        Raises InputError for sources that cannot be read, and at the end if there was no usable call among them.
        """
        maker = Maker(self.format, self.names, self.judge, self.account, self.tally, self.redact)
        if self.format == "bfcl":
            rows = bfcl_traces(Path(self.sources[0]) if self.sources else None, self.names, self.account)
            yield from map(maker.seen, rows)
        else:
            for form, files in self._by_form():
                maker.source = form
                if form == "jsonl":
                    yield from map(
                        maker.seen, plain_traces([Path(file) for file in files], self.names, self.account, self.ignored)
                    )
                else:
                    yield from maker.traces(READERS[form](self._records(files), self.account))
        if not self.tally.tools and (self.account.skipped or not self.tally.lines):
            raise self._nothing()

    def report(self) -> LogReport:
        """What the import made of its sources."""
        told = report(
            self.format, self.sources, self.account, self.tally, self.names, self.catalog, redacted=self.redact
        )
        return told.model_copy(update={"ignored": dict(sorted(self.ignored.each.most_common(SHOWN)))})

    def _by_form(self) -> list[tuple[str, list[str]]]:
        stores = [source for source in self.sources if is_store(source)]
        named = [source for source in self.sources if not is_store(source)]
        files = find(named) if named else []
        if self.format != "auto":
            return [(self.format, [*stores, *map(str, files)])]
        forms: dict[str, list[str]] = {"mlflow": stores} if stores else {}
        for path in files:
            form = told_form(path)
            if form is None:
                self.account.skip("a file in no form that is known here", str(path))
            else:
                forms.setdefault(form, []).append(str(path))
        return list(forms.items())

    def _records(self, sources: Sequence[str]) -> Iterator[Record]:
        for source in sources:
            if is_store(source) or is_database(Path(source)):
                yield from stored_traces(source, self.account)
                continue
            self.account.files += 1
            with opened(Path(source), self.account) as stream:
                yield from values(stream, source, self.account)

    def _nothing(self) -> InputError:
        """The error of an import without a usable call: what there was instead, and what to look at."""
        met = [f"{count:,} times {reason}" for reason, count in self.account.skipped.most_common(4)]
        failed = self.names.how["unknown"] + self.names.how["ambiguous"]
        if failed:
            (_, name), _ = self.names.unresolved.most_common(1)[0]
            hint = (
                f"is this the catalog that the log was made with? '{name}' is not in it; a mapping file settles names"
            )
        elif self.account.records:
            hint = "the records hold no call of a tool: does the log keep tool calls, and is the form right?"
        else:
            hint = f"give files in one of the forms {', '.join(FORMATS[1:])}"
        problem = f"no usable call in {self.account.files:,} files with {self.account.records:,} records"
        return InputError(
            f"{problem}: {'; '.join(met)}" if met else problem, source=", ".join(self.sources[:3]), hint=hint
        )


def import_logs(
    sources: Sequence[str | Path],
    format: str,
    catalog: Catalog,
    *,
    mapping: Path | None = None,
    rules: Path | None = None,
    redact: bool = False,
) -> LogImport:
    """An import of files, folders and patterns in one of FORMATS, not yet begun; `auto` tells the form of each file.

    `mapping` settles names, `rules` add outcome rules before the built-in ones, `redact` masks personal data.
    Raises InputError for an unknown form, missing sources, a mapping or rules that cannot be used.
    """
    if format not in FORMATS:
        raise InputError(f"'{format}' is not a trace format", hint=f"one of {', '.join(FORMATS)}")
    if not sources and format != "bfcl":
        raise InputError(f"format {format} needs a source to read")
    names = Names(catalog, load_mapping(mapping, catalog) if mapping is not None else Mapped())
    return LogImport(format, tuple(map(str, sources)), catalog, names, Judge(rules), redact)
