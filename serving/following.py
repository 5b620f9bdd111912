"""Following: a selector made of a catalog and a bundle, made anew when one of them changes where it comes from.

Either is read by itself and only when it has changed; what cannot be read, or not served, holds up nothing but itself:
while a bundle is broken, the catalog is still followed. Nothing here waits or runs by itself: the service polls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from data.catalog import Catalog
from data.errors import InputError, ToolcribError
from data.jsonl import load_catalog
from serving.bundle import Bundle, load_bundle
from serving.live import Live, Swap, verify
from serving.selector import Selector
from serving.watch import Source, file_source

_LOG = logging.getLogger("toolcrib.following")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Followed(Protocol[T_co]):
    """A catalog or a bundle where it comes from.

    `binding`: what is there no more must not be shown, whether or not anything new can be served.
    """

    @property
    def binding(self) -> bool: ...

    def look(self) -> str:
        """A digest that differs when the thing does; cheap. Raises what it likes."""
        ...

    def load(self) -> T_co:
        """The thing as it was at the last look, or later. Raises what it likes."""
        ...


class CatalogFile:
    """A catalog.jsonl."""

    binding = False

    def __init__(self, path: Path) -> None:
        self._path, self._source = path, file_source(path)

    def look(self) -> str:
        return self._source().digest

    def load(self) -> Catalog:
        """The catalog. Raises InputError for one that is broken or that is written to while it is read."""
        before = file_source(self._path)()
        catalog = load_catalog(self._path)
        if file_source(self._path)() != before:
            raise InputError("was written to while it was read", source=str(self._path), hint="it is read again")
        return catalog


class BundleFolder:
    """A bundle, wherever its source says that it is."""

    binding = False

    def __init__(self, source: Source) -> None:
        self._source, self._path = source, Path()

    def look(self) -> str:
        self._path, digest = self._source()
        return digest

    def load(self) -> Bundle:
        """The bundle, its hashes checked. Raises BundleError."""
        return load_bundle(self._path)


Build = Callable[[Catalog, Bundle | None, Selector | None], Selector]
"""A selector of a catalog and a bundle; what the third has loaded already may be taken from it."""


@dataclass
class _Part(Generic[T]):
    """One of the two. `seen` is the digest that was last read, `latest` the newest that could be read."""

    followed: Followed[T]
    seen: str
    latest: T
    serving: T
    trouble: str = ""

    @classmethod
    def first(cls, followed: Followed[T]) -> _Part[T]:
        seen = followed.look()
        loaded = followed.load()
        return cls(followed, seen, loaded, loaded)

    def refresh(self) -> tuple[bool, str]:
        """Whether there is a new one, and what is wrong if something is, said once for as long as it stays so."""
        try:
            digest = self.followed.look()
        except Exception as error:  # a source is anybody's code; the selector that serves needs none of it
            said, before = str(error) or type(error).__name__, self.trouble
            self.trouble = said
            if said == before:
                return False, ""
            _LOG.warning("a source cannot be read, the old one serves on: %s", said)
            return False, said
        self.trouble = ""
        if digest == self.seen:
            return False, ""
        self.seen = digest
        try:
            self.latest = self.followed.load()
        except Exception as error:  # as above
            said = str(error) or type(error).__name__
            known = isinstance(error, ToolcribError)
            _LOG.warning("refused, the old one serves on: %s", said, exc_info=not known)
            return False, said
        return True, ""


class Watch:
    """Follows a catalog, and a bundle if there is one. `live` holds the selector that serves.

    Making a Watch loads and verifies the first selector, and raises what that raises.
    """

    def __init__(self, catalog: Followed[Catalog], bundle: Followed[Bundle] | None, build: Build) -> None:
        self._build = build
        self._bundle = None if bundle is None else _Part.first(bundle)  # first: hashing is cheaper than reading cards
        self._catalog = _Part.first(catalog)
        first = build(self._catalog.latest, None if self._bundle is None else self._bundle.latest, None)
        verify(first)
        self.live = Live(first)
        self._polling = Lock()

    def poll(self) -> Swap | None:
        """Look once, and swap if something has changed. None: nothing is new.

        Something that was refused is not read again until it changes. `accepted` says that all that is new serves now.
        """
        with self._polling:
            parts: list[_Part[Any]] = [self._catalog, *([self._bundle] if self._bundle is not None else [])]
            found = [part.refresh() for part in parts]
            problem = "; ".join(said for _, said in found if said)
            if not any(new for new, _ in found):
                serving = self.live.current.versions
                return Swap(False, serving, serving, 0.0, problem) if problem else None
            swap = self._swap()
            return replace(swap, accepted=False, problem=problem) if problem and swap.accepted else swap

    def _swap(self) -> Swap:
        """Serve the latest of both, or of one where they do not go together."""
        catalog, bundle = self._catalog, self._bundle
        self._withdraw(refused=False)
        tries: list[tuple[Catalog, Bundle | None]] = [(catalog.latest, None if bundle is None else bundle.latest)]
        if bundle is not None and bundle.latest is not bundle.serving and catalog.latest is not catalog.serving:
            tries += [(catalog.latest, bundle.serving), (catalog.serving, bundle.latest)]
        swaps: list[Swap] = []
        for cards, models in tries:
            swaps.append(self.live.swap(lambda c=cards, m=models: self._build(c, m, self.live.current)))  # type: ignore[misc]
            if swaps[-1].accepted:
                catalog.serving = cards
                if bundle is not None and models is not None:
                    bundle.serving = models
                break
        self._withdraw(refused=True)
        first, last = swaps[0], swaps[-1]
        seconds = sum(swap.seconds for swap in swaps)
        return Swap(first.accepted, first.before, last.after, seconds, first.problem)

    def _withdraw(self, *, refused: bool) -> None:
        """Hide at once what a binding catalog has no more: removed tools before anything is loaded, and if nothing new
        could be served, what has changed as well."""
        if not self._catalog.followed.binding:
            return
        serving, latest = self._catalog.serving, self._catalog.latest
        if serving is latest:
            self.live.withdraw(())
            return
        hidden = self.live.withdrawn
        rows = serving.rows_in(latest)
        self.live.withdraw(
            tool
            for tool, row in zip(serving.ids, rows, strict=True)
            if row < 0 and (refused or tool not in latest or tool in hidden)
        )
