"""Several subgoals: one judgement each, one merged menu that keeps everything that a menu keeps."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Trained

from data.context import MAX_GOAL_CHARACTERS, MAX_SUBGOALS, Caller, Subgoal
from data.errors import InputError
from serving.bundle import Bundle, load_bundle
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.several import select_several
from serving.slice import Slice

CALLER = Caller(scopes=("accounts",))
CATALOG = tiny.catalog()
IDS = CATALOG.ids
GOALS = [tiny.goals(tool_id)[1] for tool_id in IDS] + tiny.no_tool_goals()[:3]
MAIL, EVENT = tiny.goals("mail.send_message")[0], tiny.goals("calendar.list_events")[0]
NOTHING = "compose a song for anna and paint a wall in berlin"


@pytest.fixture(scope="module")
def bundle(trained: Trained) -> Bundle:
    return load_bundle(trained.bundle)


@pytest.fixture(scope="module")
def selector(bundle: Bundle) -> Selector:
    return Selector(bundle, CATALOG, settings=SelectorSettings(explore_rate=0.0))


def shown(found: Slice) -> list[str]:
    return [entry.tool_id for entry in found.menu]


def test_one_subgoal_is_decided_as_ever(selector: Selector) -> None:
    alone, listed = (
        selector.select(MAIL, CALLER, request_id="r"),
        select_several(selector, [MAIL], CALLER, request_id="r"),
    )
    assert listed.canonical() == alone.canonical()
    assert '"parts"' not in alone.model_dump_json()


def test_every_step_has_its_best_tool_on_the_menu_and_its_own_record(selector: Selector) -> None:
    found = select_several(selector, [MAIL, EVENT], CALLER, request_id="r", max_tools=3)
    assert set(shown(found)) == {tiny.CORE, "mail.send_message", "calendar.list_events"}
    assert [part.query for part in found.parts] == [MAIL, EVENT]
    for part, goal in zip(found.parts, [MAIL, EVENT], strict=True):
        alone = selector.select(goal, CALLER, request_id="r")
        assert part.ranking == alone.ranking
        assert part.abstention == alone.abstention
        assert part.menu[0] == alone.ranking[0]
        relevance = {entry.tool_id: entry.relevance for entry in alone.menu if entry.relevance is not None}
        assert part.relevance == {tool: relevance[tool] for tool in part.relevance}
    best = {entry.tool_id: entry.relevance for entry in found.menu}
    for tool, value in best.items():
        of_parts = [part.relevance[tool] for part in found.parts if tool in part.relevance]
        assert value == (max(of_parts) if of_parts else None)


def test_each_steps_best_comes_before_the_tools_of_the_session(selector: Selector) -> None:
    used = tuple(tool for tool in IDS if tool not in ("mail.send_message", "calendar.list_events"))
    caller = CALLER.model_copy(update={"used_tools": used})
    found = select_several(selector, [MAIL, EVENT], caller, request_id="r", max_tools=4)
    assert {"mail.send_message", "calendar.list_events"} <= set(shown(found))


def test_a_step_that_nothing_fits_takes_no_place_and_the_advice_names_it(selector: Selector) -> None:
    found = select_several(selector, [NOTHING, MAIL], CALLER, request_id="r")
    assert [part.abstention.outcome for part in found.parts] == ["missing_capability", "menu"]
    assert found.parts[0].menu == ()
    assert found.abstention.outcome == "menu"
    assert NOTHING in found.abstention.advice
    alone = selector.select(MAIL, CALLER, request_id="r")
    assert shown(found) == shown(alone)


def test_where_nothing_fits_any_step_the_whole_abstains(selector: Selector) -> None:
    found = select_several(selector, [NOTHING, tiny.no_tool_goals()[0]], CALLER, request_id="r")
    assert found.abstention.outcome == "missing_capability"
    assert shown(found) == [tiny.CORE]


def test_the_text_that_steps_were_split_from_is_judged_beside_them(selector: Selector) -> None:
    whole = Subgoal(goal=tiny.goals("weather.get_forecast")[0], mutation=False)
    apart = select_several(selector, [MAIL, EVENT], CALLER, request_id="r", max_tools=4)
    found = select_several(selector, [MAIL, EVENT], CALLER, whole=whole, request_id="r", max_tools=4)
    assert "weather.get_forecast" not in shown(apart)
    assert set(shown(found)) == {tiny.CORE, "mail.send_message", "calendar.list_events", "weather.get_forecast"}
    assert "weather.get_forecast" in found.ranking[:3]
    assert [part.query for part in found.parts] == [MAIL, EVENT], "it is no part"
    assert (found.subgoal.goal, found.query) == (whole.goal, whole.goal)
    assert found.subgoal.mutation is None, "that it only reads is not known of its steps"


def test_what_the_whole_text_lacks_is_nobodys_advice(selector: Selector) -> None:
    nothing = Subgoal(goal=NOTHING)
    found = select_several(selector, [MAIL, EVENT], CALLER, whole=nothing, request_id="r")
    apart = select_several(selector, [MAIL, EVENT], CALLER, request_id="r")
    assert found.abstention == apart.abstention
    assert shown(found) == shown(apart)


def test_a_menu_of_the_whole_text_alone_is_one(selector: Selector) -> None:
    steps = [NOTHING, tiny.no_tool_goals()[0]]
    found = select_several(selector, steps, CALLER, whole=Subgoal(goal=MAIL), request_id="r")
    assert found.abstention.outcome == "menu"
    assert all(step in found.abstention.advice for step in steps)
    assert shown(found) == shown(selector.select(MAIL, CALLER, request_id="r"))


def test_a_step_said_twice_is_judged_once_and_gets_no_second_turn(selector: Selector) -> None:
    once = select_several(selector, [MAIL, EVENT], CALLER, request_id="r")
    twice = select_several(selector, [MAIL, EVENT, MAIL], CALLER, request_id="r")
    assert shown(once) == shown(twice)
    assert len(twice.parts) == 3
    assert twice.parts[0] == twice.parts[2]


def test_a_reading_step_stays_one_beside_a_writing_step(selector: Selector) -> None:
    read, write = Subgoal(goal=EVENT, mutation=False), Subgoal(goal=MAIL, mutation=True)
    found = select_several(selector, [read, write], CALLER, request_id="r")
    assert all(CATALOG[tool].risk == 0 for tool in found.parts[0].ranking)
    assert found.subgoal.mutation is None
    both = select_several(selector, [read, Subgoal(goal="say the weather", mutation=False)], CALLER, request_id="r")
    assert both.subgoal.mutation is False
    assert all(CATALOG[tool].risk == 0 for tool in shown(both))


def test_the_verdict_is_the_strictest_over_the_steps_that_a_tool_serves(selector: Selector) -> None:
    known, unknown = (Subgoal(goal="send the email", mutation=mutation) for mutation in (True, None))
    used = CALLER.model_copy(update={"used_tools": ("mail.send_message",)})
    reading = [Subgoal(goal="say the weather", mutation=False), Subgoal(goal=EVENT, mutation=False)]
    denied = select_several(selector, reading, used, request_id="r")
    assert {entry.tool_id: entry.verdict for entry in denied.menu}["mail.send_message"] == "deny"
    mixed = select_several(selector, [reading[0], known, unknown], used, request_id="r")
    single = selector.select(known, used, request_id="r")
    verdicts = {entry.tool_id: (entry.verdict, entry.rule) for entry in mixed.menu}
    assert verdicts["mail.send_message"] == {e.tool_id: (e.verdict, e.rule) for e in single.menu}["mail.send_message"]


@pytest.mark.parametrize(
    ("subgoals", "said"),
    [
        ([], "no subgoal"),
        (["send"] * (MAX_SUBGOALS + 1), "there are 9 subgoals"),
        (["x" * 15_000, "y" * (MAX_GOAL_CHARACTERS - 15_000)], "characters together"),
        (["send the email", " "], "the goal is empty"),
    ],
)
def test_what_is_no_request_of_several_steps_is_refused(selector: Selector, subgoals: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        select_several(selector, subgoals, CALLER)


def test_a_slice_of_several_survives_json_and_keeps_its_id(selector: Selector) -> None:
    found = select_several(selector, [MAIL, EVENT], CALLER, request_id="r")
    again = Slice.model_validate_json(found.model_dump_json())
    assert again == found
    assert again.sealed().slice_id == found.slice_id
    assert again.public().parts == found.parts


def test_stages_are_recorded_and_timed_once(selector: Selector) -> None:
    found = select_several(selector, [Subgoal(goal=MAIL), Subgoal(goal=EVENT, mutation=False)], CALLER, request_id="r")
    alone = selector.select(MAIL, CALLER, request_id="r")
    assert [record.stage for record in found.record] == [record.stage for record in alone.record]
    assert list(found.timings_ms) == list(alone.timings_ms)
    filtered = next(record for record in found.record if record.stage == "filter")
    assert filtered.dropped == {}, "what one step lets through is not dropped"
    assert filtered.kept == len(IDS)


limits = st.builds(
    SelectorSettings,
    max_tools=st.integers(1, 12),
    token_budget=st.sampled_from([0, 40, 120, 6000]),
    explore_rate=st.sampled_from([0.0, 0.5, 1.0]),
    explore_writes=st.booleans(),
    candidates=st.sampled_from([1, 3, 40]),
)
steps = st.lists(
    st.builds(Subgoal, goal=st.sampled_from(GOALS), mutation=st.sampled_from([None, True, False])),
    min_size=2,
    max_size=8,
)
callers = st.builds(
    Caller,
    scopes=st.sampled_from([(), ("accounts",)]),
    allowed_tools=st.one_of(st.none(), st.lists(st.sampled_from(IDS), max_size=8).map(tuple)),
    used_tools=st.lists(st.sampled_from(IDS), max_size=3, unique=True).map(tuple),
)


@settings(max_examples=120, deadline=None)
@given(limits, steps, st.one_of(st.none(), steps), callers, st.booleans(), st.integers(0, 5))
def test_every_merged_menu_keeps_its_limits_its_order_and_the_rules(
    bundle: Bundle,
    how: SelectorSettings,
    subgoals: list[Subgoal],
    around: list[Subgoal] | None,
    caller: Caller,
    with_model: bool,
    number: int,
) -> None:
    whole = around[0] if around else None
    selector = Selector(bundle if with_model else None, CATALOG, settings=how)
    found = select_several(selector, subgoals, caller, whole=whole, request_id=f"r{number}")
    for_whole = selector.select(whole, caller, request_id=f"r{number}").ranking if whole is not None else ()
    allowed = {tool for tool, may in zip(IDS, selector.index.mask.apply(caller).allowed, strict=True) if may}
    core = tiny.CORE in allowed and selector.token_cost(tiny.CORE) <= how.token_budget

    assert len(found.menu) <= how.max_tools <= 12
    assert sum(selector.token_cost(tool) for tool in shown(found)) <= how.token_budget
    rows = [CATALOG.row[tool] for tool in shown(found)]
    assert rows == sorted(set(rows)), "registry order, each tool once"
    assert (tiny.CORE in shown(found)) == core
    assert sum(entry.explored for entry in found.menu) <= 1

    named = found.public().model_dump_json()
    assert not [tool for tool in IDS if tool not in allowed and f'"{tool}"' in named.replace(found.subgoal.goal, "")]
    reading = all(subgoal.mutation is False for subgoal in [*subgoals, *([whole] if whole is not None else [])])
    for entry in found.menu:
        asked_for = [part for part in found.parts if entry.tool_id in part.menu]
        assert entry.reason in ("core", "used", "explored") or asked_for or entry.tool_id in for_whole
        if reading and CATALOG[entry.tool_id].risk > 0:
            assert (entry.reason, entry.verdict) == ("used", "deny")
    again = select_several(selector, subgoals, caller, whole=whole, request_id=f"r{number}")
    assert found.canonical() == again.canonical()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(GOALS), min_size=2, max_size=4, unique=True), st.integers(2, 12), st.integers(0, 30))
def test_exploration_takes_no_steps_best_tool(bundle: Bundle, goals: list[str], max_tools: int, number: int) -> None:
    plain, exploring = (
        select_several(
            Selector(bundle, CATALOG, settings=SelectorSettings(explore_rate=rate)),
            goals,
            CALLER,
            request_id=f"r{number}",
            max_tools=max_tools,
        )
        for rate in (0.0, 1.0)
    )
    lost = set(shown(plain)) - set(shown(exploring))
    assert len(lost) <= 1
    for part in plain.parts:
        assert not lost & set(part.ranking[:1])


def test_the_observed_share_of_each_shown_tool_matches_its_logged_chance(bundle: Bundle) -> None:
    rate, rounds = 0.4, 600
    selector = Selector(bundle, CATALOG, settings=SelectorSettings(explore_rate=rate, explore_width=0.0))
    seen: Counter[str] = Counter()
    logged: dict[str, float] = {}
    for number in range(rounds):
        found = select_several(selector, [MAIL, EVENT], CALLER, request_id=f"r{number}", max_tools=5)
        for entry in found.menu:
            seen[entry.tool_id] += 1
            assert logged.setdefault(entry.tool_id, entry.propensity) == entry.propensity
    assert len(logged) > 5, "something was tried"
    for tool, chance in logged.items():
        spread = 4 * math.sqrt(chance * (1 - chance) / rounds)
        assert abs(seen[tool] / rounds - chance) <= spread + 1e-9


def test_a_model_that_fails_costs_order_and_is_noted_once(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    selector = Selector(bundle, CATALOG, settings=SelectorSettings(explore_rate=0.0))

    def explode(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(selector.models.head, "probabilities", explode)
    found = select_several(selector, [MAIL, EVENT], CALLER, request_id="r")
    assert [degradation.stage for degradation in found.degradations] == ["relevance"]
    assert {"mail.send_message", "calendar.list_events"} <= set(shown(found))
    assert all(part.relevance == {} for part in found.parts)
