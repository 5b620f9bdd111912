"""Request filter: tools whose kind of effect is not what the request asked for.

| rule | what is known of the request | what it drops |
|---|---|---|
| `read_only_request` | it only reads | tools that write or destroy |
| `write_request` | it writes | tools that only read |
| `risk_above_need` | it writes, and none of its operations changes or removes what exists | destructive tools |

Nothing known: nothing dropped, the risk policy decides alone. *Destructive* has the meaning of the Model Context
Protocol: anything that is not merely additive, so an update counts and creating or sending does not. Operations that
are not given ask for nothing in particular and rule nothing out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.cards import Risk
from data.context import Subgoal
from data.words import split_identifier

RULES = ("read_only_request", "write_request", "risk_above_need")

# Removes or ends; changes in place; may do either; the same in other languages.
_VERBS = """
cancel clean cleanup clear close deactivate deallocate decommission delete deprovision destroy detach disable discard
disconnect dismiss drop empty erase evict expire flush kill purge remove reset revoke rollback shutdown stop terminate
trim truncate unassign undo uninstall unlink unpublish unregister unset unsubscribe wipe withdraw
alter change convert edit force format merge migrate modify move mutate overwrite patch put rebase rename reorder
replace restore revert rewrite save set squash sync transfer update upsert write
execute manage run
löschen entfernen ändern bearbeiten überschreiben supprimer effacer modifier remplacer eliminar borrar quitar actualizar
modificar reemplazar excluir apagar remover atualizar eliminare cancellare rimuovere modificare verwijderen wijzigen
usuń usunąć zmień удалить изменить обновить xóa sửa sil silmek değiştir
删除 移除 修改 更新 覆盖 刪除 削除 変更 삭제 제거 수정 변경
"""
DESTRUCTIVE_VERBS = frozenset(_VERBS.split())
"""Verbs that a destructive tool may serve; everything else is taken for additive."""


@dataclass(frozen=True, eq=False)
class RequestFilterResult:
    """`keep`: bool (n,). `rule`: int8 (n,), index into `RULES`, -1 where kept."""

    keep: NDArray[np.bool_]
    rule: NDArray[np.int8]

    def dropped(self, tool_ids: Sequence[str]) -> dict[str, str]:
        """Tool id -> rule that dropped it; `tool_ids` (n,) names the filtered tools in their order."""
        return {tool_ids[position]: RULES[self.rule[position]] for position in np.flatnonzero(~self.keep).tolist()}


def request_filter(risk: NDArray[np.int8], subgoal: Subgoal) -> RequestFilterResult:
    """Which of the tools with these `Risk` values, int8 (n,), have the kind of effect that `subgoal` asks for."""
    rule = np.full(len(risk), -1, dtype=np.int8)
    if subgoal.mutation is False:
        rule[risk > int(Risk.READ_ONLY)] = RULES.index("read_only_request")
    elif subgoal.mutation is True:
        rule[risk == int(Risk.READ_ONLY)] = RULES.index("write_request")
        if subgoal.operations and not any(map(asks_for_destruction, subgoal.operations)):
            rule[risk == int(Risk.DESTRUCTIVE)] = RULES.index("risk_above_need")
    return RequestFilterResult(keep=rule == -1, rule=rule)


def asks_for_destruction(operation: str) -> bool:
    """Whether an operation (`delete`, `file.remove`, `Deleting old rows`) changes or removes what exists."""
    return any(not DESTRUCTIVE_VERBS.isdisjoint(_base_forms(word)) for word in split_identifier(operation))


def _base_forms(word: str) -> set[str]:
    """The word and what it may be inflected from: deletes, deleted, deleting -> delete; dropped -> drop."""
    word = word.casefold()
    forms = {word}
    for ending in ("s", "es", "d", "ed", "ing"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3:
            forms |= {stem, stem + "e"}
            if stem[-1] == stem[-2]:
                forms.add(stem[:-1])
    if word.endswith("ies") or word.endswith("ied"):
        forms.add(word[:-3] + "y")
    return forms
