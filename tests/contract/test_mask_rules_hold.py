"""Contract: the vectorised mask is the rules, read one card at a time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from data.cards import Requires, ToolCard
from data.context import Caller
from serving.mask import RULES, StaticMask

names = st.lists(st.sampled_from(["a", "A", "b", "c", "*"]), max_size=3).map(tuple)
name = st.sampled_from(["", "a", "A", "b", "*"])
IDS = tuple(f"d.t{i}" for i in range(6))


@st.composite
def catalogs(draw: st.DrawFn) -> list[ToolCard]:
    return [
        ToolCard(
            tool_id=tool_id,
            name=tool_id,
            requires=Requires(scopes=draw(names), connections=draw(names)),
            tenants=draw(names),
            envs=draw(names),
            regions=draw(names),
            flags=draw(names),
            cost_usd=draw(st.sampled_from([None, 0.0, 0.1, 2.0])),
        )
        for tool_id in draw(st.lists(st.sampled_from(IDS), unique=True, max_size=6))
    ]


callers = st.builds(
    Caller,
    tenant=name,
    scopes=names,
    connections=names,
    env=name,
    region=name,
    flags=names,
    cost_ceiling_usd=st.sampled_from([None, 0.0, 0.1, 1.0]),
    allowed_tools=st.one_of(st.none(), st.lists(st.sampled_from(IDS), max_size=5).map(tuple)),
)


def first_rule_that_drops(card: ToolCard, caller: Caller, unavailable: frozenset[str]) -> str | None:
    keeps = {
        "tenant": not card.tenants or caller.tenant in card.tenants,
        "scopes": set(card.requires.scopes) <= set(caller.scopes),
        "connections": set(card.requires.connections) <= set(caller.connections),
        "env": not card.envs or caller.env in card.envs,
        "region": not card.regions or caller.region in card.regions,
        "flags": set(card.flags) <= set(caller.flags),
        "workflow": caller.allowed_tools is None or card.tool_id in caller.allowed_tools,
        "cost_ceiling": caller.cost_ceiling_usd is None
        or (card.cost_usd is not None and card.cost_usd <= caller.cost_ceiling_usd),
        "health": card.tool_id not in unavailable,
    }
    assert tuple(keeps) == RULES
    return next((rule for rule, kept in keeps.items() if not kept), None)


@settings(max_examples=200, deadline=None)
@given(catalogs(), st.lists(callers, min_size=1, max_size=4), st.frozensets(st.sampled_from(IDS), max_size=2))
def test_the_mask_equals_the_rules_applied_card_by_card(
    cards: list[ToolCard], several: list[Caller], down: frozenset[str]
) -> None:
    mask = StaticMask.build(cards)
    for caller in [*several, *several]:  # the second round is answered from the cache
        for unavailable in (frozenset[str](), down):
            expected = {card.tool_id: first_rule_that_drops(card, caller, unavailable) for card in cards}
            result = mask.apply(caller, unavailable)
            assert result.dropped == {tool_id: rule for tool_id, rule in expected.items() if rule}
            assert result.allowed.tolist() == [expected[card.tool_id] is None for card in cards]
