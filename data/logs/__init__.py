"""Logs: what agents wrote down in forms of their own, as traces, with an account of what was usable."""

from __future__ import annotations

from data.logs.importing import FORMATS, LogImport, import_logs
from data.logs.report import LogReport, to_text

__all__ = ["FORMATS", "LogImport", "LogReport", "import_logs", "to_text"]
