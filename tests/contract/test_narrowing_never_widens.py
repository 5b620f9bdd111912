"""Contract: whatever a body says of its caller, it opens no tool that the credential does not open."""

from __future__ import annotations

from collections.abc import Iterator
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
IDS = (*(f"probe.{number}" for number in range(28)), *(f"d.t{number}" for number in range(4)))

names = st.lists(st.sampled_from(WORDS), max_size=3).map(tuple)
place = st.sampled_from(["", *WORDS])
ceiling = st.sampled_from([None, 0.0, 0.1, 1.0])
tools = st.none() | st.none() | st.lists(st.sampled_from(IDS), max_size=5).map(tuple)

PROBES = [
    ToolCard(tool_id=f"probe.{number}", name="t", **{"cost_usd": 0.0, **rule})
    for number, rule in enumerate(
        [
            {},
            *({"requires": Requires(scopes=(word,))} for word in WORDS),
            *({"requires": Requires(connections=(word,))} for word in WORDS),
            *({field: (word,)} for field in ("tenants", "envs", "regions", "flags") for word in WORDS),
            *({"cost_usd": cost} for cost in (None, 0.1, 2.0)),
        ]
    )
]
"""A tool behind each single rule: random cards are behind several, so a rule that leaks would seldom be the last."""

more_cards = st.lists(
    st.builds(
        ToolCard,
        tool_id=st.sampled_from(IDS[-4:]),
        name=st.just("t"),
        requires=st.builds(Requires, scopes=names, connections=names),
        tenants=names,
        envs=names,
        regions=names,
        flags=names,
        risk=st.sampled_from(Risk),
        cost_usd=st.sampled_from([None, 0.0, 0.1, 2.0]),
    ),
    max_size=3,
    unique_by=lambda card: card.tool_id,
)
cards = more_cards.map(lambda found: [*PROBES, *found])
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
    """Bodies that ask for a few things, granted ones among them: one wrong field refuses the whole."""

    def some(of: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...] | None]:
        return st.none() | st.lists(st.sampled_from(of), max_size=3).map(tuple) | names if of else st.none() | names

    def one(of: str) -> st.SearchStrategy[str | None]:
        return st.none() | st.just(of) | place

    fields: dict[str, st.SearchStrategy[object]] = {
        "principal": st.sampled_from(WORDS),
        "tenant": one(granted.tenant),
        "env": one(granted.env),
        "region": one(granted.region),
        "scopes": some(granted.scopes),
        "connections": some(granted.connections),
        "flags": some(granted.flags),
        "roles": st.just(granted.roles) | names,
        "cost_ceiling_usd": ceiling,
        "allowed_tools": tools,
        "used_tools": st.lists(st.sampled_from(IDS), max_size=3).map(tuple),
    }
    asked = draw(st.sets(st.sampled_from(sorted(fields)), min_size=1, max_size=2))
    return CallerBody(**{field: draw(fields[field]) for field in sorted(asked)})  # type: ignore[arg-type]


def some_narrowed(granted: Identity, data: st.DataObject) -> Iterator[Caller]:
    """The callers of a few bodies; those that are refused are refused as such."""
    for body in data.draw(st.lists(bodies(granted.caller), min_size=6, max_size=6)):
        try:
            yield narrow(granted, body)
        except DoorError as error:
            refused = error
        else:
            continue
        assert (refused.status, refused.code) == (403, "not_permitted")


@settings(max_examples=150, deadline=None)
@given(cards, identities, st.data())
def test_a_narrowed_caller_sees_some_of_what_the_credential_shows(
    catalog: list[ToolCard], granted: Identity, data: st.DataObject
) -> None:
    mask = StaticMask.build(catalog)
    for caller in some_narrowed(granted, data):
        assert not (mask.apply(caller).allowed & ~mask.apply(granted.caller).allowed).any()


@settings(max_examples=80, deadline=None)
@given(cards, identities, names, names, st.data())
def test_of_several_places_a_body_gets_what_the_credential_shows_in_one_of_them(
    catalog: list[ToolCard],
    granted: Identity,
    envs: tuple[str, ...],
    regions: tuple[str, ...],
    data: st.DataObject,
) -> None:
    granted = replace(granted, envs=envs, regions=regions)
    mask = StaticMask.build(catalog)
    for caller in some_narrowed(granted, data):
        assert caller.env in (granted.caller.env, *envs)
        assert caller.region in (granted.caller.region, *regions)
        there = granted.caller.model_copy(update={"env": caller.env, "region": caller.region})
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


@settings(max_examples=150, deadline=None)
@given(cards, identities, policies, st.data())
def test_no_body_gets_a_milder_verdict_from_any_policy(
    catalog: list[ToolCard], granted: Identity, policy: RiskPolicy, data: st.DataObject
) -> None:
    subgoal = Subgoal(goal="g")
    for caller in some_narrowed(granted, data):
        for card in catalog:
            assert verdict(policy, card, caller, subgoal) == verdict(policy, card, granted.caller, subgoal)


@settings(max_examples=80, deadline=None)
@given(identities, st.data())
def test_only_who_may_act_for_others_can_be_another_principal_and_nobody_another_tenant(
    granted: Identity, data: st.DataObject
) -> None:
    for caller in some_narrowed(granted, data):
        assert caller.tenant == granted.caller.tenant
        assert granted.may_act_for or caller.principal == granted.caller.principal


@given(identities)
def test_a_body_that_says_nothing_changes_nothing(granted: Identity) -> None:
    assert narrow(granted, None) == narrow(granted, CallerBody()) == granted.caller
