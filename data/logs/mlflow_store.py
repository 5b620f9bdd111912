"""MLflow's own store: traces read from its SQLite database, or from a tracking server page by page."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

from data.errors import InputError
from data.logs.account import Account
from data.logs.json_stream import Record, loads
from data.logs.values import items, mapping, text

SQLITE_MAGIC = b"SQLite format 3\x00"
PAGE, SPANS_PAGE = 500, 20
TIMEOUT_S = 60

UNREACHED_SPANS = "a trace whose spans are in another place"


def is_store(source: str) -> bool:
    """Whether a source is an address, not a path."""
    return source.startswith(("http://", "https://", "sqlite:///"))


def stored_traces(source: str, account: Account) -> Iterator[Record]:
    """The traces of a tracking server (http, https) or a database (sqlite:///path, or the path of the file).

    Raises InputError for a database that is none of MLflow's and a server that does not answer.
    """
    account.files += 1
    if source.startswith(("http://", "https://")):
        yield from _served(source.rstrip("/"), account)
        return
    path = Path(unquote(source.removeprefix("sqlite:///")))
    if not path.is_file():
        raise InputError("there is no database here", source=source, hint="sqlite:////absolute/path, or a file's path")
    yield from _in_database(path, account)


def _in_database(path: Path, account: Account) -> Iterator[Record]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            for id, time in database.execute("SELECT request_id, timestamp_ms FROM trace_info ORDER BY request_id"):
                account.lines += 1
                where = f"{path}, trace {id}"
                rows = database.execute("SELECT content FROM spans WHERE trace_id = ?", (id,))
                spans = [loads(content) for (content,) in rows]
                tags = dict(database.execute("SELECT key, value FROM trace_tags WHERE request_id = ?", (id,)))
                spans = spans or _in_folder(tags)
                if not spans:
                    account.skip(UNREACHED_SPANS, where)
                    continue
                told = database.execute(
                    "SELECT name, value, valid FROM assessments WHERE trace_id = ? ORDER BY created_timestamp", (id,)
                )
                assessments = [
                    {"assessment_name": name, "feedback": {"value": loads(value)}, "valid": bool(valid)}
                    for name, value, valid in told
                ]
                info = {"trace_id": id, "timestamp_ms": time, "tags": tags, "assessments": assessments}
                yield Record({"info": info, "data": {"spans": spans}}, where)
    except (sqlite3.Error, ValueError) as error:
        raise InputError(
            f"this is no database that MLflow can have written: {error}",
            source=str(path),
            hint="give the database of an MLflow 3 store, or the address of its server",
        ) from error


def _in_folder(tags: dict[str, str]) -> list[Any]:
    """The spans that an older store keeps in a file beside the database."""
    place = tags.get("mlflow.artifactLocation", "").removeprefix("file://")
    file = Path(place) / "traces.json"
    if not place or not file.is_file():
        return []
    return items(mapping(file.read_text(encoding="utf-8")).get("spans"))


def _served(address: str, account: Account) -> Iterator[Record]:
    page = ""
    experiments = list(_experiments(address))
    while True:
        locations = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": id}} for id in experiments]
        asked = {"locations": locations, "max_results": PAGE, **({"page_token": page} if page else {})}
        told = _asked(f"{address}/api/3.0/mlflow/traces/search", asked)
        infos = [mapping(one) for one in items(told.get("traces"))]
        for start in range(0, len(infos), SPANS_PAGE):
            some = infos[start : start + SPANS_PAGE]
            ids = [("trace_ids", text(info.get("trace_id"))) for info in some]
            whole = _asked(f"{address}/api/3.0/mlflow/traces/batchGet?{urlencode(ids)}")
            account.lines += len(some)
            yield Record(whole, f"{address}, from trace {some[0].get('trace_id')} on")
        page = text(told.get("next_page_token"))
        if not page:
            return


def _experiments(address: str) -> Iterator[str]:
    page = ""
    while True:
        asked = {"max_results": PAGE, **({"page_token": page} if page else {})}
        told = _asked(f"{address}/api/2.0/mlflow/experiments/search", asked)
        yield from (text(mapping(one).get("experiment_id")) for one in items(told.get("experiments")))
        page = text(told.get("next_page_token"))
        if not page:
            return


def _asked(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """A server's answer; credentials are those that MLflow's own client takes from the environment."""
    headers = {"Content-Type": "application/json"}
    user, password = os.environ.get("MLFLOW_TRACKING_USERNAME"), os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
    if token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    elif user:
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    request = Request(address, json.dumps(body).encode() if body is not None else None, headers)
    server = urlsplit(address)._replace(path="", query="").geturl()
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            return mapping(loads(answer.read()))
    except HTTPError as error:
        hint = "set MLFLOW_TRACKING_TOKEN" if error.code in {401, 403} else "is it an MLflow 3 tracking server?"
        raise InputError(f"the server answers {error.code} {error.reason}", source=server, hint=hint) from error
    except (URLError, OSError, ValueError) as error:
        raise InputError(f"the server gives no answer: {error}", source=server, hint="check the address") from error
