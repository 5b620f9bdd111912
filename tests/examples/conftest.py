"""A service on the examples' own catalog, behind a real port, for conversations that the examples have with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from conversations import EXAMPLES, Service, Talk
from crib import Crib
from service_desk import Desk

from serving.door.assembly import Assembly
from serving.door.identity import Authenticator
from serving.door.settings import ServiceSettings, load_settings


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`toolcrib serve --dev` on the examples' catalog, in a thread, for all conversations."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "service.yaml").write_text("selector: {explore_rate: 0.0}\n", encoding="utf-8")
    settings: ServiceSettings = load_settings(folder / "service.yaml")
    assembly = Assembly(
        settings,
        catalog=EXAMPLES / "service_desk.jsonl",
        bundle=None,
        authenticator=Authenticator(settings.identity, source=None, dev=True),
    )
    server = uvicorn.Server(uvicorn.Config(assembly.application(), port=0, log_config=None, access_log=False))
    listener = server.config.bind_socket()
    listener.listen()  # who comes before the server has started waits for it
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield Service(f"http://127.0.0.1:{listener.getsockname()[1]}", assembly)
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def service(running: Service) -> Service:
    """The service, with the traces of this test alone."""
    return Service(running.url, running.assembly, before=len(running.traces()))


@pytest.fixture(scope="session")
def client(running: Service) -> Iterator[httpx.Client]:
    """Of the agent and of the person at once: `--dev` lets both in without a key."""
    with httpx.Client(base_url=f"{running.url}/v1/", timeout=30) as opened:
        yield opened


@pytest.fixture(scope="session")
def talk(client: httpx.Client) -> Callable[..., Talk]:
    """Begins a conversation in which the person at hand agrees, or does not."""

    def begin(form: str, agrees: bool = True, **functions: Any) -> Talk:
        def approve(call: str) -> bool:
            made.asked.append(call)
            return agrees

        desk = Desk()
        made = Talk(Crib(client, client, {**desk.functions, **functions}, approve, form), desk)
        return made

    return begin
