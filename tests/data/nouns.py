"""Hypothesis strategies for the nouns of `data`: any card, any trace, any JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from data.cards import Requires, Risk, ToolCard, Trust
from data.traces import Shown, Trace

words = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
texts = st.text(max_size=30)
lists = st.lists(texts, max_size=3).map(tuple)
finite = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
moments = st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)).flatmap(
    lambda naive: st.integers(-720, 720).map(lambda minutes: naive.replace(tzinfo=UTC) + timedelta(minutes=minutes))
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=4)

cards = st.builds(
    ToolCard,
    tool_id=words,
    name=words,
    domain=texts,
    summary=texts,
    description=texts,
    aliases=lists,
    examples=lists,
    not_for=lists,
    requires=st.builds(Requires, connections=lists, scopes=lists),
    tenants=lists,
    flags=lists,
    risk=st.sampled_from(Risk),
    dry_run=st.booleans(),
    cost_usd=st.none() | finite,
    p50_ms=st.none() | finite,
    owner=texts,
    input_schema=objects,
    core=st.booleans(),
    trust=st.sampled_from(Trust),
    first_seen=st.none() | moments,
)
menus = st.lists(words, max_size=4, unique=True).flatmap(
    lambda ids: st.tuples(
        *(
            st.builds(
                Shown,
                tool_id=st.just(tool_id),
                position=st.just(position),
                relevance=st.none() | finite,
                propensity=st.floats(min_value=0.001, max_value=1),
                explored=st.booleans(),
            )
            for position, tool_id in enumerate(ids)
        )
    )
)
traces = st.builds(
    Trace,
    trace_id=words,
    step=st.integers(-(2**63), 2**63 - 1),
    ts=st.none() | moments,
    tenant=texts,
    request=texts,
    goal=words,
    mutation=st.none() | st.booleans(),
    tool_id=st.none() | words,
    arguments=st.none() | objects,
    caller=st.none() | objects,
    retrieved=st.none() | lists,
    filtered=st.none() | lists,
    menu=st.none() | menus,
    outcome=st.sampled_from(("success", "failure", "unknown")),
    latency_ms=st.none() | finite,
    cost_usd=st.none() | finite,
    task_success=st.none() | st.booleans(),
    gold=st.none() | lists,
)
