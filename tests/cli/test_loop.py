"""The whole loop through the command: import, mine, train, measure, select, explain, promote; and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
import yaml
from tiny import Trained
from workshop import Ran, Run, write_json, write_lines

from data.traces import Trace
from serving.bundle import load_bundle

GOAL = "send the email for anna"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; untrained rungs are left out, since they would export the real base model."""
    from training import evaluation  # noqa: PLC0415 (torch: only for who trains)

    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(evaluation, "base_bundle", lambda: None)
    return folder


@pytest.fixture
def store(here: Path, new_store: Callable[[], Path]) -> Path:
    return Path(shutil.copytree(new_store(), here / "mlruns"))


def card_rows(count: int | None = None) -> list[dict[str, Any]]:
    return [card.model_dump(mode="json") for card in list(tiny.catalog())[:count]]


def recipe_file(folder: Path, base: Path) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(tiny.recipe(base).model_dump(mode="json")))
    return path


def query_rows() -> list[dict[str, Any]]:
    return [query.model_dump(mode="json") for query in tiny.queries()]


def test_the_loop_from_tools_and_logs_to_a_promoted_bundle(run: Run, here: Path, store: Path, trained: Trained) -> None:
    tools = write_lines(here / "tools.jsonl", card_rows())
    log = tiny.write_traces_jsonl(here / "log.jsonl", tiny.traces())
    queries = write_lines(here / "queries.jsonl", query_rows())
    caller = write_json(here / "caller.json", {"principal": "ann"})
    recipe = recipe_file(here, trained.base)

    assert run("catalog", "import", tools, "--format", "jsonl", "-o", "catalog.jsonl").code == 0
    assert run("traces", "import", log, "--format", "jsonl", "-c", "catalog.jsonl", "-o", "traces.parquet").code == 0
    mined = run("mine", "-c", "catalog.jsonl", "-t", "traces.parquet", "-o", "mined")
    assert mined.code == 0
    assert (here / "mined" / "examples.parquet").is_file()

    made = run("train", "-c", "catalog.jsonl", "-t", "traces.parquet", "-r", recipe, "-o", "bundle")
    assert made.code == 0, made.err
    assert "bundle written to bundle" in made.out
    assert "report written to bundle.report.html" in made.out
    assert "held out of fine-tuning" in (here / "bundle.report.html").read_text()
    version = load_bundle(here / "bundle").version

    measured = run("evaluate", "-b", "bundle", "-c", "catalog.jsonl", "-q", queries, "--json")
    assert measured.code == 0, measured.err
    report = measured.json()
    assert report["rungs"]["selector"]["all"]["n"] == 12
    assert report["bundle_version"] == version
    on_traces = run("evaluate", "-b", "bundle", "-c", "catalog.jsonl", "-t", "traces.parquet")
    assert on_traces.code == 0
    assert "selector" in on_traces.out
    assert "not estimated: no decision can be replayed: no menu was logged" in on_traces.out

    chosen = run("select", GOAL, "-b", "bundle", "-c", "catalog.jsonl", "--caller", caller, "--json", "--explain")
    assert chosen.code == 0, chosen.err
    decision = chosen.json()
    assert decision["ranking"][0] == "mail.send_message"
    assert decision["bundle_version"] == version
    assert decision["record"][0]["dropped"] == {tiny.GUARDED: "scopes"}

    saved = here / "slice.json"
    saved.write_text(chosen.out)
    explained = run("explain", saved)
    assert explained.code == 0
    assert f"scopes: {tiny.GUARDED}" in explained.out
    assert "relevance: kept" in explained.out

    public = run("select", GOAL, "-b", "bundle", "-c", "catalog.jsonl", "--caller", caller, "--json")
    assert tiny.GUARDED not in public.out

    first = run("promote", "bundle")
    assert first.code == 0, first.err
    assert "is the champion" in first.out
    again = run("promote", "bundle", "-c", "catalog.jsonl", "-q", queries)
    assert again.code == 0, again.err
    assert "already" in again.out
    back = run("promote", "--rollback")
    assert back.code == 2
    assert "nothing to roll back to" in back.err
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []


# --- what is refused ----------------------------------------------------------------------------------------------


def assert_refused(ran: Ran, said: str) -> None:
    """Exit code 2, nothing on stdout, and one line that says what is wrong."""
    assert ran.code == 2
    assert ran.out == ""
    errors = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, ran.err
    assert ran.err.splitlines()[-1] == errors[0]
    assert "Traceback" not in ran.err
    assert said in errors[0]


def broken_in_line_7() -> str:
    lines = [json.dumps(row) for row in card_rows(8)]
    lines[6] = lines[6][:-1]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file holds no lines"),
        ("\n\n", "the file holds no lines"),
        (broken_in_line_7(), "line 7: broken JSON"),
        (json.dumps(card_rows(1)[0]) * 2, "line 1: broken JSON"),
        ("\n".join(json.dumps(row) for row in (*card_rows(3), card_rows(1)[0])), "line 4, field 'tool_id'"),
        ('{"tool_id": "a", "name": "a"}\n{"name": "b"}\n', "line 2, field 'tool_id'"),
        ('{"tool_id": "a", "name": "a", "risk": "mild"}\n', "line 1, field 'risk'"),
    ],
    ids=["empty", "blank", "broken", "two on a line", "duplicate", "no id", "no risk"],
)
@pytest.mark.parametrize("command", ["import", "select", "train", "evaluate"])
def test_a_catalog_that_is_none_is_refused_by_line_and_field(
    run: Run, here: Path, command: str, content: str, said: str
) -> None:
    bad = here / "bad.jsonl"
    bad.write_text(content)
    log = tiny.write_traces_jsonl(here / "log.jsonl", tiny.traces()[:3])
    before = sorted(here.iterdir())
    ran = {
        "import": lambda: run("catalog", "import", bad, "--format", "jsonl", "-o", "catalog.jsonl"),
        "select": lambda: run("select", GOAL, "-b", "none", "-c", bad),
        "train": lambda: run("train", "-c", bad, "-t", log, "-o", "bundle"),
        "evaluate": lambda: run("evaluate", "-b", "none", "-c", bad, "-t", log, "--json"),
    }[command]()
    assert_refused(ran, said)
    assert len(ran.err.splitlines()) == 1
    assert sorted(here.iterdir()) == before


@pytest.fixture
def catalog_file(here: Path) -> Path:
    return write_lines(here / "catalog.jsonl", card_rows())


def train(run: Run, here: Path, trained: Trained, rows: list[Trace], catalog: Path) -> Ran:
    log = tiny.write_traces_jsonl(here / "log.jsonl", rows)
    return run("train", "-c", catalog, "-t", log, "-r", recipe_file(here, trained.base), "-o", "bundle")


def assert_no_bundle(here: Path) -> None:
    assert not [path.name for path in here.iterdir() if "bundle" in path.name]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tool_id": "gone.tool"}, "log.jsonl"),
        ({"outcome": "failure", "error_class": "auth"}, "log.jsonl"),
        ({"tool_id": None}, "log.jsonl"),
    ],
    ids=["unknown tools", "no success", "nothing called"],
)
def test_a_log_without_a_positive_trains_nothing(
    run: Run, here: Path, trained: Trained, catalog_file: Path, change: dict[str, Any], said: str
) -> None:
    rows = [trace.model_copy(update=change) for trace in tiny.traces()[:30]]
    assert_refused(train(run, here, trained, rows, catalog_file), said)
    assert_no_bundle(here)


def test_one_tool_is_no_choice(run: Run, here: Path, trained: Trained) -> None:
    alone = write_lines(here / "catalog.jsonl", card_rows(1))
    assert_refused(train(run, here, trained, tiny.traces()[:9], alone), "the catalog has 1 tool(s)")
    assert_no_bundle(here)
    ran = run("select", GOAL, "-b", "none", "-c", alone, "--json")
    assert ran.code == 0
    assert [entry["tool_id"] for entry in ran.json()["menu"]] == ["mail.send_message"]


def test_a_broken_line_of_a_log_imports_nothing(run: Run, here: Path, catalog_file: Path) -> None:
    log = tiny.write_traces_jsonl(here / "log.jsonl", tiny.traces()[:9])
    lines = log.read_text().splitlines()
    lines[6] = lines[6].replace("{", "", 1)
    log.write_text("\n".join(lines))
    ran = run("traces", "import", log, "--format", "jsonl", "-c", catalog_file, "-o", "traces.parquet")
    assert_refused(ran, "line 7: broken JSON")
    assert not (here / "traces.parquet").exists()
    assert_refused(run("mine", "-c", catalog_file, "-t", log, "-o", "mined"), "line 7")
    assert not (here / "mined").exists()


def test_a_goal_has_a_longest_length(run: Run, trained: Trained, catalog_file: Path) -> None:
    for bundle in (trained.bundle, "none"):
        assert_refused(run("select", "x" * 20_001, "-b", bundle, "-c", catalog_file), "20000")
        longest = run("select", ("send the email " * 1400)[:20_000], "-b", bundle, "-c", catalog_file, "--json")
        assert longest.code == 0, longest.err
        assert "mail.send_message" in longest.json()["ranking"]


def test_a_query_that_is_too_long_is_named_when_measuring(
    run: Run, here: Path, trained: Trained, catalog_file: Path
) -> None:
    queries = write_lines(here / "queries.jsonl", [{"qid": "q", "text": "x" * 20_001, "gold": ["mail.send_message"]}])
    assert_refused(run("evaluate", "-b", trained.bundle, "-c", catalog_file, "-q", queries), "goal")


def test_a_bundle_of_another_catalog_is_refused(run: Run, here: Path, trained: Trained) -> None:
    rows = [row | {"tool_id": f"new.{row['tool_id']}"} for row in card_rows()]
    other = write_lines(here / "other.jsonl", rows)
    queries = write_lines(here / "queries.jsonl", [{"qid": "q", "text": GOAL, "gold": ["new.mail.send_message"]}])
    assert_refused(run("select", GOAL, "-b", trained.bundle, "-c", other), "another catalog")
    assert_refused(run("evaluate", "-b", trained.bundle, "-c", other, "-q", queries, "--json"), "another catalog")


def test_a_damaged_bundle_is_refused_by_every_command_that_reads_it(
    run: Run, here: Path, own_bundle: Path, catalog_file: Path
) -> None:
    (own_bundle / "tokenizer.json").unlink()
    queries = write_lines(here / "queries.jsonl", query_rows())
    for arguments in (
        ("select", GOAL, "-b", own_bundle, "-c", catalog_file),
        ("evaluate", "-b", own_bundle, "-c", catalog_file, "-q", queries),
        ("promote", own_bundle),
    ):
        assert_refused(run(*arguments), "'tokenizer.json' is missing")


def test_a_recipe_with_mistakes_is_refused_with_all_of_them(run: Run, here: Path, catalog_file: Path) -> None:
    log = tiny.write_traces_jsonl(here / "log.jsonl", tiny.traces())
    (here / "recipe.yaml").write_text("sed: 1\nretriever: {epochs: -1}\n")
    ran = run("train", "-c", catalog_file, "-t", log, "-r", "recipe.yaml", "-o", "bundle")
    assert_refused(ran, "'sed'")
    assert "'retriever.epochs'" in ran.err
    assert_no_bundle(here)


def test_a_folder_of_something_else_is_not_trained_over(
    run: Run, here: Path, trained: Trained, catalog_file: Path
) -> None:
    (here / "bundle").mkdir()
    (here / "bundle" / "thesis.txt").write_text("years of work")
    assert_refused(train(run, here, trained, tiny.traces(), catalog_file), "something other than a bundle")
    assert [path.name for path in (here / "bundle").iterdir()] == ["thesis.txt"]
