"""Contract: whatever a body says of its caller, it opens no tool that the credential does not open."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from data.cards import Requires, Risk, ToolCard
from data.context import Caller, Subgoal
from serving.door.errors import DoorError
from serving.door.granted import Identity
from serving.door.narrowing import CallerBody, narrow
from serving.mask import StaticMask
from serving.policy import Condition, PolicyRule, RiskPolicy, verdict

WORDS = ["a", "A", "b", "c"]
IDS = tuple(f"d.t{number}" for number in range(6))

names = st.lists(st.sampled_from(WORDS), max_size=3).map(tuple)
place = st.sampled_from(["", *WORDS])
ceiling = st.sampled_from([None, 0.0, 0.1, 1.0])
tools = st.none() | st.lists(st.sampled_from(IDS), max_size=5).map(tuple)

cards = st.lists(
    st.builds(
        ToolCard,
        tool_id=st.sampled_from(IDS),
        name=st.just("t"),
        requires=st.builds(Requires, scopes=names, connections=names),
        tenants=names,
        envs=names,
        regions=names,
        flags=names,
        risk=st.sampled_from(Risk),
        cost_usd=st.sampled_from([None, 0.0, 0.1, 2.0]),
    ),
    max_size=6,
    unique_by=lambda card: card.tool_id,
)
identities = st.builds(
    Identity,
    name=st.just("key"),
    caller=st.builds(
        Caller,
        principal=st.sampled_from(WORDS),
        tenant=place,
        scopes=names,
        connections=names,
        env=place,
        region=place,
        flags=names,
        roles=names,
        cost_ceiling_usd=ceiling,
        allowed_tools=tools,
    ),
    may_act_for=st.booleans(),
)


@st.composite
def bodies(draw: st.DrawFn, granted: Caller) -> CallerBody:
    """Bodies of which many ask for something granted, so that not everything is refused."""

    def some(of: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...] | None]:
        fitting = st.lists(st.sampled_from(of), max_size=3).map(tuple) if of else st.just(())
        return st.none() | fitting | fitting | names

    def one(of: str) -> st.SearchStrategy[str | None]:
        return st.none() | st.just(of) | place

    return CallerBody(
        principal=draw(st.none() | st.sampled_from(WORDS)),
        tenant=draw(one(granted.tenant)),
        env=draw(one(granted.env)),
        region=draw(one(granted.region)),
        scopes=draw(some(granted.scopes)),
        connections=draw(some(granted.connections)),
        flags=draw(some(granted.flags)),
        roles=draw(st.none() | st.just(granted.roles) | names),
        cost_ceiling_usd=draw(ceiling),
        allowed_tools=draw(tools),
        used_tools=draw(st.lists(st.sampled_from(IDS), max_size=3).map(tuple)),
    )


def narrowed(granted: Identity, body: CallerBody) -> Caller | None:
    """None where the body is refused."""
    try:
        return narrow(granted, body)
    except DoorError as error:
        refused = error
    assert (refused.status, refused.code) == (403, "not_permitted")
    return None


@settings(max_examples=400, deadline=None)
@given(cards, identities, st.data())
def test_a_narrowed_caller_sees_some_of_what_the_credential_shows(
    catalog: list[ToolCard], granted: Identity, data: st.DataObject
) -> None:
    caller = narrowed(granted, data.draw(bodies(granted.caller)))
    if caller is None:
        return
    mask = StaticMask.build(catalog)
    assert not (mask.apply(caller).allowed & ~mask.apply(granted.caller).allowed).any()


@settings(max_examples=200, deadline=None)
@given(cards, identities, names, names, st.data())
def test_of_several_places_a_body_gets_what_the_credential_shows_in_one_of_them(
    catalog: list[ToolCard],
    granted: Identity,
    envs: tuple[str, ...],
    regions: tuple[str, ...],
    data: st.DataObject,
) -> None:
    granted = replace(granted, envs=envs, regions=regions)
    caller = narrowed(granted, data.draw(bodies(granted.caller)))
    if caller is None:
        return
    assert caller.env in (granted.caller.env, *envs)
    assert caller.region in (granted.caller.region, *regions)
    there = granted.caller.model_copy(update={"env": caller.env, "region": caller.region})
    mask = StaticMask.build(catalog)
    assert not (mask.apply(caller).allowed & ~mask.apply(there).allowed).any()


some_words = st.lists(st.sampled_from(["", *WORDS]), min_size=1, max_size=2).map(tuple)
conditions = st.fixed_dictionaries(
    {},
    optional={
        "roles_any": some_words,
        "envs": some_words,
        "tenants": some_words,
        "risk": st.lists(st.sampled_from(Risk), min_size=1, max_size=2).map(tuple),
    },
).map(lambda given: Condition(**given))  # type: ignore[arg-type]
policies = st.builds(
    RiskPolicy,
    rules=st.lists(
        st.builds(
            PolicyRule, name=st.just("r"), verdict=st.sampled_from(["allow", "confirm", "deny"]), when=conditions
        ),
        max_size=4,
    ).map(tuple),
)


@settings(max_examples=400, deadline=None)
@given(cards, identities, policies, st.data())
def test_no_body_gets_a_milder_verdict_from_any_policy(
    catalog: list[ToolCard], granted: Identity, policy: RiskPolicy, data: st.DataObject
) -> None:
    caller = narrowed(granted, data.draw(bodies(granted.caller)))
    if caller is None:
        return
    subgoal = Subgoal(goal="g")
    for card in catalog:
        assert verdict(policy, card, caller, subgoal) == verdict(policy, card, granted.caller, subgoal)


@settings(max_examples=200, deadline=None)
@given(identities, st.data())
def test_only_who_may_act_for_others_can_be_another_principal_and_nobody_another_tenant(
    granted: Identity, data: st.DataObject
) -> None:
    caller = narrowed(granted, data.draw(bodies(granted.caller)))
    if caller is None:
        return
    assert caller.tenant == granted.caller.tenant
    assert granted.may_act_for or caller.principal == granted.caller.principal


@given(identities)
def test_a_body_that_says_nothing_changes_nothing(granted: Identity) -> None:
    assert narrow(granted, None) == narrow(granted, CallerBody()) == granted.caller
