"""A small service desk: the functions behind the tools of `service_desk.jsonl`, and a conversation with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from crib import Crib


def _orders() -> dict[str, dict[str, Any]]:
    return {
        "A-17": {"customer": "Ada", "article": "lamp", "amount": 40.0, "refunded": 0.0, "notes": []},
        "A-18": {"customer": "Ben", "article": "chair", "amount": 120.0, "refunded": 0.0, "notes": []},
        "A-19": {"customer": "Ada", "article": "desk", "amount": 310.0, "refunded": 0.0, "notes": []},
    }


@dataclass
class Desk:
    """Orders by number, sent messages, pieces in stock, booked collections."""

    orders: dict[str, dict[str, Any]] = field(default_factory=_orders)
    sent: list[tuple[str, str]] = field(default_factory=list)
    stock: dict[str, int] = field(default_factory=lambda: {"lamp": 7, "chair": 0, "desk": 2})
    collections: list[tuple[str, str]] = field(default_factory=list)

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Tool id -> the function that does it. One that can run dry takes `dry_run` besides its arguments."""
        return {
            "orders.find": self.find,
            "orders.refund": self.refund,
            "orders.note": self.note,
            "mail.send": self.send,
            "stock.level": self.level,
            "courier.book": self.book,
        }

    def find(self, customer: str) -> list[dict[str, Any]]:
        return [{"order": number, **order} for number, order in self.orders.items() if order["customer"] == customer]

    def refund(self, order: str, amount: float, dry_run: bool = False) -> str:
        left = self._order(order)["amount"] - self.orders[order]["refunded"]
        if amount > left:
            raise ValueError(f"at most {left:.2f} EUR of {order} can be refunded")
        if dry_run:
            return f"would refund {amount:.2f} EUR of {order}"
        self.orders[order]["refunded"] += amount
        return f"refunded {amount:.2f} EUR of {order}"

    def note(self, order: str, text: str) -> str:
        self._order(order)["notes"].append(text)
        return f"noted beside {order}"

    def send(self, to: str, text: str) -> str:
        self.sent.append((to, text))
        return f"sent to {to}"

    def level(self, article: str) -> int:
        return self.stock[article]

    def book(self, order: str, day: str) -> str:
        self._order(order)
        self.collections.append((order, day))
        return f"{order} will be collected on {day}"

    def _order(self, number: str) -> dict[str, Any]:
        if number not in self.orders:
            raise LookupError(f"there is no order {number}")
        return self.orders[number]


@contextmanager
def conversation(form: str) -> Iterator[Crib]:
    """A conversation with the service at TOOLCRIB_URL; a person at this terminal is asked about calls that wait.

    TOOLCRIB_KEY is the agent's key, TOOLCRIB_PERSON_KEY one with `may_confirm`. `toolcrib serve --dev` needs neither.
    """
    url = os.environ.get("TOOLCRIB_URL", "http://127.0.0.1:8700")
    with _client(url, "TOOLCRIB_KEY") as service, _client(url, "TOOLCRIB_PERSON_KEY") as person:
        yield Crib(service, person, Desk().functions, _ask_at_terminal, form)


def _client(url: str, key: str) -> httpx.Client:
    headers = {"X-API-Key": os.environ[key]} if key in os.environ else {}
    return httpx.Client(base_url=f"{url.rstrip('/')}/v1/", headers=headers, timeout=30)


def _ask_at_terminal(call: str) -> bool:
    return input(f"{call}: go ahead? [y/N] ").strip().lower() == "y"
