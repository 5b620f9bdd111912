"""Removed gold: queries whose right tools are taken out of the catalog, so that the right answer is "nothing fits".

Every tool that may be as good goes with them: declared equivalents, and tools of the same name.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from data.context import Caller
from serving.selector import Selector
from training.answers import ABSTAINS, Answer
from training.metrics import auroc

MOST_QUERIES = 300
"""So many are measured; each takes a decision of its own besides that of the whole evaluation."""


def removed_gold(
    answers: Sequence[Answer],
    selector: Selector,
    same_name: Mapping[str, frozenset[str]],
    *,
    caller: Caller | None = None,
    seed: int = 0,
) -> dict[str, float | int | None]:
    """How well the same queries are told apart with and without their right tools: one as often as the other.

    `answers` are what `selector` gave `caller`; their slices stand for the queries as they are. `precision`: of those
    turned away, the share whose tools were gone; `recall`: of those whose tools were gone, the share turned away.
    `auroc` None: no head states whether anything fits. `n` queries, at most `MOST_QUERIES`.
    """
    answered = [answer for answer in answers if answer.query.gold]
    if len(answered) > MOST_QUERIES:
        answered = random.Random(seed).sample(answered, MOST_QUERIES)
    before = [answer.slice.abstention for answer in answered]
    after = []
    for answer in answered:
        gone = answer.good.union(*(same_name.get(tool, frozenset()) for tool in answer.good))
        judged = selector.judge(answer.query.text, caller, without=dict.fromkeys(gone, "removed"))
        after.append(judged.stance)
    wrongly, rightly = (sum(stance.outcome in ABSTAINS for stance in stances) for stances in (before, after))
    known = [
        (1.0 - stance.fit, gone)
        for stances, gone in ((before, 0), (after, 1))
        for stance in stances
        if stance.fit is not None
    ]
    return {
        "n": len(answered),
        "auroc": auroc([score for score, _ in known], [gone for _, gone in known]) if known else None,
        "precision": rightly / (rightly + wrongly) if rightly + wrongly else None,
        "recall": rightly / len(answered) if answered else None,
    }
