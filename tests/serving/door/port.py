"""The shop behind a real port, in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shop import PEOPLE, TOOLS, write_catalog, write_config

from serving.door.assembly import Assembly
from serving.door.identity import Authenticator
from serving.door.listening import Listening, listening
from serving.door.settings import load_settings


@contextmanager
def open_port(folder: Path, **settings: Any) -> Iterator[tuple[str, Listening, Assembly]]:
    """(its address, the server, what it serves); at the end it is asked to end, and has ended."""
    catalog, config = write_catalog(folder / "catalog.jsonl", TOOLS), folder / "service.yaml"
    loaded = load_settings(write_config(config, PEOPLE, **settings))
    authenticator = Authenticator(loaded.identity, source=config)
    assembly = Assembly(loaded, catalog=catalog, bundle=None, authenticator=authenticator)
    server = listening(assembly.application(), assembly.door, loaded, "127.0.0.1", 0)
    listener = server.config.bind_socket()
    listener.listen()  # who comes before the server has started waits for it
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", server, assembly
    finally:
        server.should_exit = True
        thread.join()
