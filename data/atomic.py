"""Atomic files and folders: a reader sees the old content or the new, whole, never a part."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from data.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a fresh name beside `path` to write to; move it over `path` when the block ends without an error.

    Missing parent folders are made. The new file is on disk before it gets its name. On any error the old file
    stays and nothing is left behind. A symbolic link is followed, so that its target is replaced.

    Raises InputError if the place cannot be written.
    """
    target = Path(os.path.realpath(path))
    # the user's umask decides the mode, which tempfile would narrow to the owner
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield fresh
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(fresh, target)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", source=str(path), hint="choose another place"
        ) from error
    finally:
        with suppress(OSError):  # usually gone by now, and where it could not be made, it cannot be removed
            fresh.unlink()


@contextmanager
def replacing_folder(folder: Path, check: Callable[[list[str]], None]) -> Iterator[Path]:
    """Give a fresh folder beside `folder` to write into; it takes the name of `folder` when the block ends well.

    `check` is given the names that are in the old folder, before the block and after it, and raises where it is not to
    be replaced. On any error the old folder stays and nothing is left behind. Raises InputError if the place cannot be
    written.
    """
    target = folder.resolve()
    mark = secrets.token_hex(6)
    fresh, old = target.with_name(f".{target.name}.{mark}.tmp"), target.with_name(f".{target.name}.{mark}.old")
    try:
        check(_names(target))
        fresh.mkdir(parents=True)
        yield fresh
        check(_names(target))
        if target.exists():
            target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", source=str(folder), hint="choose another place"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _names(target: Path) -> list[str]:
    if target.is_dir():
        return sorted(path.name for path in target.iterdir())
    return [target.name] if target.exists() else []
