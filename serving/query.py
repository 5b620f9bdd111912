"""Query: the text that retrieval searches for, resolved from the goal and the state of the task.

A bare reply ("yes", "do it", "weiter", "好的") says nothing by itself: it takes its meaning from the open plan step or,
without one, from the last turn that says something.
"""

from __future__ import annotations

from collections.abc import Iterable

from data.card_text import query_text
from data.context import MAX_GOAL_CHARACTERS, Recent, Subgoal
from data.errors import InputError
from data.words import split_identifier

_TURN_CHARACTERS = 600
"""How much of a turn is read, from its end: proposals come last ("... Shall I create the event?")."""

# One language a line: English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Turkish, Vietnamese,
# Indonesian, Russian, Ukrainian, Arabic, Hindi; then whole runs of the scripts that write no spaces.
_ASSENT = """
yes yeah yep yup ya y ok okay okey k sure fine good great perfect correct right exactly agreed approved approve confirm
confirmed absolutely definitely certainly alright continue proceed go ahead on do it that this so please pls thanks
thank you now then next and keep going resume again retry try just the same lgtm sounds
ja jawohl gerne bitte weiter mach mache das es genau einverstanden klar danke los nochmal
oui ouais vas va fais le continuez continuer d accord bien sûr svp merci parfait allez
sí si vale claro adelante hazlo continúa continua sigue por favor de acuerdo gracias perfecto dale bueno
sim pode fazer faça isso prossiga obrigado certo
sì bene procedi fallo per grazie
graag doe het maar ga door akkoord prima dank je
tak dobrze zrób to kontynuuj dalej proszę dzięki
evet tamam devam et lütfen olur yap
vâng được đồng ý tiếp tục làm đi
lanjut lanjutkan silakan oke
да ок хорошо давай продолжай сделай это так пожалуйста дальше конечно
добре продовжуй
نعم حسنا تمام أجل استمر تابع من فضلك
हाँ हां ठीक है जी करो जारी रखें
是 是的 好 好的 好吧 可以 行 对 對 没问题 继续 繼續 请继续 執行 执行 做吧 同意 确认 確認 当然 就这样
はい うん ええ お願いします お願い 続けて 続けてください やって やってください 了解 それで
네 예 응 좋아 좋아요 그래 그래요 계속 계속해 계속해줘 해줘 진행해 진행해줘 확인
"""
_BARE = frozenset(split_identifier(_ASSENT))

_LONGEST_REPLY = 8


def resolve_query(subgoal: Subgoal, recent: Recent) -> str:
    """The query of `subgoal`: its goal, or what a bare reply refers to, with operations and entities that add words.

    Raises InputError for a goal that is empty or blank.
    """
    goal = query_text(subgoal.goal)
    if not goal:
        raise InputError("the goal is empty", field="goal", hint="say in words what the next step should achieve")
    said = _meant_by(goal, recent) if is_bare_reply(goal) else goal
    return _with_added_words(said, (*subgoal.operations, *subgoal.entities))


def is_bare_reply(text: str) -> bool:
    """Whether a text only assents or urges on: at most eight words, each of them one of these; or no words at all."""
    words = split_identifier(text.casefold())
    return len(words) <= _LONGEST_REPLY and _BARE.issuperset(words)


def _meant_by(reply: str, recent: Recent) -> str:
    plan = query_text(recent.plan)
    if plan:
        return plan
    for turn in reversed(recent.turns):
        text = query_text(turn)
        if text and not is_bare_reply(text):
            return _end_of(text)
    return reply  # nothing to refer to: the reply stands, and finds what it finds


def _end_of(text: str) -> str:
    """The last `_TURN_CHARACTERS` of a text, from a word's start."""
    if len(text) <= _TURN_CHARACTERS:
        return text
    tail = text[-_TURN_CHARACTERS - 1 :]
    return tail.split(" ", 1)[1] if " " in tail else tail[1:]


def _with_added_words(text: str, additions: Iterable[str]) -> str:
    """Append each addition that has a word which the text does not have yet."""
    known = set(split_identifier(text))
    parts = [text]
    for addition in additions:
        words = set(split_identifier(addition))
        if not words <= known:
            parts.append(query_text(addition))
            known |= words
    return " ".join(parts)


def as_subgoal(given: Subgoal | str) -> Subgoal:
    """A text as a subgoal of which nothing more is known. InputError for one that is too long or no proper text."""
    if isinstance(given, Subgoal):
        return given
    try:
        return Subgoal(goal=given)
    except ValueError as error:
        problem = "is too long" if len(given) > MAX_GOAL_CHARACTERS else "is no text that can be encoded"
        raise InputError(problem, field="goal", hint="give one step, not a transcript") from error
