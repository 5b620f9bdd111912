"""toolcrib keys: a key is shown once, its hash goes into the file, and the file can be checked beforehand."""

from __future__ import annotations

import json
from pathlib import Path

from workshop import Run

from serving.door.identity import Authenticator
from serving.door.settings import load_identity


def test_a_new_key_opens_the_door_with_the_lines_that_are_printed(run: Run, tmp_path: Path) -> None:
    ran = run("keys", "new", "--name", 'an "agent"')
    assert ran.code == 0
    key, _, lines = ran.out.partition("\n")
    path = tmp_path / "service.yaml"
    path.write_text(lines[lines.index("identity:") :])
    assert key not in path.read_text()
    found = Authenticator(load_identity(path), source=path).identify({"x-api-key": key})
    assert found.name == 'an "agent"'


def test_a_new_key_as_json_is_one_object(run: Run) -> None:
    made = json.loads(run("keys", "new", "--name", "agent", "--json").out)
    assert sorted(made) == ["key", "name", "sha256"]


def test_a_name_that_no_file_could_hold_is_refused(run: Run) -> None:
    ran = run("keys", "new", "--name", "a\nb")
    assert (ran.code, ran.out) == (2, "")
    assert "--name" in ran.err


def test_check_lists_who_is_let_in(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "service.yaml"
    key = {"name": "agent", "sha256": "ab" * 32, "scopes": ["mail.read"], "operator": True}
    path.write_text(json.dumps({"identity": {"keys": [key]}}))
    ran = run("keys", "check", path)
    assert ran.code == 0
    assert all(word in ran.out for word in ("agent", "mail.read", "operator"))


def test_check_names_every_problem_and_fails(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "service.yaml"
    path.write_text("identity:\n  keys:\n    - {name: agent}\npool: {quue: 3}\n")
    ran = run("keys", "check", path)
    assert (ran.code, ran.out) == (2, "")
    assert "sha256" in ran.err
    assert "line 4, pool.quue" in ran.err
