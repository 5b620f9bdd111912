"""Wire models of reranking, in the shape that rerank clients send."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from serving.door.wire_fields import WHOLE, Answer, Body, Text


class DocumentBody(Body):
    """A document given as an object."""

    text: Text


class RerankBody(Body):
    """Documents to order by a query, in the shape that rerank clients send."""

    query: str = Field(min_length=1, max_length=20_000)
    documents: list[Text | DocumentBody] = Field(min_length=1, max_length=256)
    top_n: Annotated[int, Field(ge=1, le=256), WHOLE] | None = None
    return_documents: bool = False
    model: Annotated[str, Field(max_length=256)] = ""


class RerankResult(Answer):
    """Place of a document in the request, and its relevance in [0, 1]."""

    index: int
    relevance_score: float
    document: dict[str, str] | None = None


class RerankAnswer(Answer):
    """Documents, best first."""

    id: str
    model: str
    results: list[RerankResult]
