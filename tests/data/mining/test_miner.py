"""The miner: the same tables from the same log, whole files or none, and errors that say what to do."""

from __future__ import annotations

import random
import shutil
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mining_log import CATALOG, TOOLS, at, call, menu, mined, rows, same
from pydantic import ValidationError

from data.errors import InputError
from data.mining.goals import normal_goal
from data.mining.miner import EXAMPLE_SCHEMA, Mined, mine, mine_to_folder
from data.mining.options import PROPENSITY_CLIP, MiningOptions
from data.mining.report import MiningReport
from data.mining.rules import NEGATIVE_RULES, POSITIVE_RULES
from data.trace_store import write_traces
from data.traces import Shown, Trace

LOG = [
    *(
        call(
            TOOLS[n % 5],
            ("success", "tool_error", "timeout", "validation", "unknown", "success")[n % 6],
            trace_id=f"t{n // 3}",
            goal=f"goal {n // 3 % 7}",
            step=n,
            ts=at(n),
            menu=menu(*TOOLS[: n % 6 + 1]),
        )
        for n in range(60)
    ),
    call(None, "unknown", trace_id="none", goal="nothing fits"),
    call("gone.tool", trace_id="gone"),
    call("mail.send", trace_id="blank", goal=" \t "),
]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mined]:
    """A folder that an earlier mining of LOG wrote, and what it gave."""
    out = tmp_path_factory.mktemp("first") / "deep" / "mined"
    write_traces(out.parent.parent / "t.parquet", LOG)
    mine_to_folder(out.parent.parent / "t.parquet", CATALOG, out)
    return out, mine(out.parent.parent / "t.parquet", CATALOG)


def test_rows_in_another_order_and_in_several_files_give_the_same_tables(
    tmp_path: Path, first: tuple[Path, Mined]
) -> None:
    shuffled = LOG.copy()
    random.Random(3).shuffle(shuffled)
    write_traces(tmp_path / "1.parquet", shuffled[:20])
    write_traces(tmp_path / "2.parquet", shuffled[20:])
    a, b = first[1], mine(tmp_path, CATALOG)
    assert same(a, b)
    assert a.report.positives > 0
    assert a.report.negatives > 0
    assert a.report.history > 0


def test_the_plain_form_can_be_mined_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "plain.jsonl").write_text(
        '{"trace_id": "t", "step": 1, "task": "x", "subgoal": "send it", "tool_id": "mail.send", "ok": true}\n'
    )
    assert [row["tool_id"] for row in rows(mine(tmp_path / "plain.jsonl", CATALOG))] == ["mail.send"]


def test_the_report_says_what_was_left_out_before_any_rule(first: tuple[Path, Mined]) -> None:
    report = first[1].report
    assert report.rows == len(LOG)
    assert report.rows_dropped == {"no_goal": 1, "unknown_tool": 1}
    assert report.outcomes == {"success": 22, "failure": 30, "unknown": 10, "no_call": 1}
    assert report.found["unknown_outcome"] == 10
    assert "unknown_outcome" not in report.examples
    assert report.tools_without_positive == ("maps.route",)


def test_the_folder_holds_the_tables_and_the_report(first: tuple[Path, Mined]) -> None:
    out, mining = first
    assert [p.name for p in out.parent.iterdir()] == ["mined"]
    assert sorted(p.name for p in out.iterdir()) == [
        "examples.parquet",
        "history.parquet",
        "no_tool.parquet",
        "preferences.parquet",
        "report.json",
    ]
    assert pq.read_table(out / "examples.parquet").equals(mining.examples)
    assert pq.read_schema(out / "examples.parquet").equals(EXAMPLE_SCHEMA)
    assert pq.read_table(out / "preferences.parquet").equals(mining.preferences)
    assert pq.read_table(out / "no_tool.parquet").equals(mining.no_tool)
    assert pq.read_table(out / "history.parquet").equals(mining.history)
    assert MiningReport.model_validate_json((out / "report.json").read_text()) == mining.report


def test_an_earlier_result_is_replaced_by_a_later_one_and_kept_where_mining_fails(
    tmp_path: Path, first: tuple[Path, Mined]
) -> None:
    out = tmp_path / "mined"
    shutil.copytree(first[0], out)
    write_traces(tmp_path / "bad.parquet", [call("mail.send", "timeout")])
    with pytest.raises(InputError):
        mine_to_folder(tmp_path / "bad.parquet", CATALOG, out)
    assert pq.read_table(out / "examples.parquet").equals(first[1].examples)
    write_traces(tmp_path / "good.parquet", [call("mail.send")])
    later = mine(tmp_path / "good.parquet", CATALOG)
    mine_to_folder(tmp_path / "good.parquet", CATALOG, out)
    assert pq.read_table(out / "examples.parquet").equals(later.examples)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.parquet", "good.parquet", "mined"]


def test_a_folder_that_holds_other_things_is_not_replaced(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.parquet", LOG)
    with pytest.raises(InputError, match=r"not a mining folder: it holds t\.parquet"):
        mine_to_folder(tmp_path / "t.parquet", CATALOG, tmp_path)
    assert (tmp_path / "t.parquet").exists()


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ([], "among 0 rows"),
        (
            [call("mail.send", "timeout"), call(None, "unknown", trace_id="t2")],
            r"2 rows: 1 failure, 1 no call \(log more",
        ),
        ([call("mail.send", "unknown")] * 3, r"3 rows: 3 unknown \(.*unknown_weight"),
        ([call("gone.tool")] * 3, r"3 rows: 3 success, 3 with unknown tool \(.*catalog"),
    ],
    ids=["empty", "failures", "unknown", "another catalog"],
)
def test_a_log_without_a_positive_is_an_error_that_says_what_it_holds(log: list[Trace], says: str) -> None:
    with pytest.raises(InputError, match=says):
        mined(log)


def test_calls_of_unknown_outcome_are_enough_where_they_are_asked_for() -> None:
    mining = mined([call("mail.send", "unknown")], unknown_weight=0.2)
    assert [(row["reason"], row["weight"]) for row in rows(mining)] == [("unknown_outcome", 0.2)]


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_missing_file_or_engine_is_said_before_any_work(tmp_path: Path, engine: str) -> None:
    if engine == "spark" and find_spec("pyspark") is None:
        with pytest.raises(InputError, match=r"needs pyspark.*toolcrib\[spark\]"):
            mine(tmp_path / "absent.parquet", CATALOG, engine=engine)
    else:
        with pytest.raises(InputError, match="no such file"):
            mine(tmp_path / "absent.parquet", CATALOG, engine=engine)


def test_an_unknown_engine_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'polars' \\(use one of duckdb, spark\\)"):
        mine(tmp_path / "t.parquet", CATALOG, engine="polars")


def test_a_table_that_holds_no_traces_is_named_with_the_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"trace_id": ["t"], "goal": ["g"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="field 'tool_id': no such column; there are trace_id, goal"):
        mine(tmp_path / "t.parquet", CATALOG)
    pq.write_table(pa.table({"trace_id": ["t"], "goal": ["g"], "tool_id": [7]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="field 'tool_id': the column holds int64, not string"):
        mine(tmp_path / "t.parquet", CATALOG)


def test_columns_that_a_log_does_not_have_count_as_not_known(tmp_path: Path) -> None:
    table = pa.table({"trace_id": ["t"], "goal": ["g"], "tool_id": ["mail.send"], "outcome": ["success"]})
    pq.write_table(table, tmp_path / "t.parquet")
    (row,) = rows(mine(tmp_path / "t.parquet", CATALOG))
    assert (row["tool_id"], row["step"], row["ts"], row["tenant"]) == ("mail.send", 0, None, "")


def test_a_changed_byte_in_the_traces_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_traces(path, LOG)
    raw = bytearray(path.read_bytes())
    raw[200] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(InputError, match="not a whole Parquet file"):
        mine(path, CATALOG)


@pytest.mark.parametrize(
    "wrong", [{"unknown_weight": 1.5}, {"repeat_cap": 0}, {"propensity_clip": 0.5}, {"soft_negatives": 0.1}]
)
def test_an_option_out_of_bounds_or_unknown_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        MiningOptions.model_validate(wrong)


@given(st.text(alphabet="aÄß \t\n\u00a0\u2003İКйC", max_size=12))
def test_the_normal_form_of_a_goal_is_its_own_normal_form(goal: str) -> None:
    assert normal_goal(normal_goal(goal)) == normal_goal(goal)


tools = st.sampled_from([*TOOLS, "gone.tool"])
shown = st.lists(st.tuples(tools, st.sampled_from([1.0, 0.5, 0.001])), max_size=4).map(
    lambda entries: tuple(Shown(tool_id=t, position=n, propensity=p) for n, (t, p) in enumerate(entries))
)
traces = st.builds(
    call,
    st.none() | tools,
    st.sampled_from(["success", "failure", "unknown", "validation", "timeout", "tool_error", "empty_result"]),
    goal=st.sampled_from(["a", "A ", "b", "c", " "]),
    trace_id=st.sampled_from(["t1", "t2", "t3"]),
    tenant=st.sampled_from(["", "acme"]),
    step=st.integers(0, 4),
    ts=st.none() | st.integers(0, 5).map(at),
    task_success=st.none() | st.booleans(),
    menu=st.none() | shown,
    retrieved=st.none() | st.lists(tools, max_size=3).map(tuple),
    gold=st.none() | st.none() | st.lists(tools, max_size=2).map(tuple),
)


@given(st.lists(traces, min_size=10, max_size=60))
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_the_log_every_example_is_consistent(log: list[Trace]) -> None:
    mining = mined([*log, call("mail.send", trace_id="sure", goal="sure")], unknown_weight=0.1)
    examples = rows(mining)
    sides: dict[tuple[str, str], set[float]] = {}
    for row in examples:
        sides.setdefault((normal_goal(row["goal"]), row["tool_id"]), set()).add(row["label"])
        assert row["reason"] in (POSITIVE_RULES if row["label"] == 1.0 else NEGATIVE_RULES)
        assert 0.0 < row["weight"] <= PROPENSITY_CLIP
        assert row["tool_id"] in CATALOG
    assert all(len(labels) == 1 for labels in sides.values())
    positive = {pair for pair, labels in sides.items() if labels == {1.0}}
    for pair in mining.preferences.to_pylist():
        assert (normal_goal(pair["goal"]), pair["better"]) in positive
        assert (normal_goal(pair["goal"]), pair["worse"]) not in positive
    report = mining.report
    made = {rule: n for rule, n in report.found.items() if rule in (*POSITIVE_RULES, *NEGATIVE_RULES, "no_tool")}
    assert sum(made.values()) == len(examples) + report.no_tool + sum(report.dropped.values())
