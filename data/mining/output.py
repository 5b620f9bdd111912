"""The mining folder on disk: three Parquet tables with a report, replaced as a whole."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from data.errors import InputError

FILES = frozenset({"examples.parquet", "preferences.parquet", "no_tool.parquet", "report.json"})


def check_replaceable(folder: Path) -> None:
    """Raise InputError unless `folder` is absent, empty, or holds an earlier mining result and nothing else."""
    if not folder.exists():
        return
    strangers = sorted(p.name for p in folder.iterdir() if p.name not in FILES) if folder.is_dir() else [folder.name]
    if strangers:
        raise InputError(
            f"is not a mining folder: it holds {', '.join(strangers[:3])}",
            source=str(folder),
            hint="name a new folder, or one that an earlier mining wrote",
        )


def write_folder(folder: Path, tables: Mapping[str, Any], report: str) -> None:
    """Write NAME.parquet for each table and report.json; the folder appears, or changes, only when all is written.

    Raises InputError if the place cannot be written; what was there before is then still there.
    """
    target = folder.resolve()
    mark = secrets.token_hex(6)
    fresh, old = target.with_name(f".{target.name}.{mark}.tmp"), target.with_name(f".{target.name}.{mark}.old")
    try:
        fresh.mkdir(parents=True)
        for name, table in tables.items():
            pq.write_table(table, fresh / f"{name}.parquet", compression="zstd", write_page_checksum=True)
        (fresh / "report.json").write_text(report + "\n", encoding="utf-8")
        check_replaceable(target)
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
