"""The service's file: read whole, refused with every problem and its line, free of secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from data.errors import InputError
from serving.door.settings import ServiceSettings, load_settings

HASH = "ab" * 32


def written(folder: Path, text: str) -> Path:
    path = folder / "service.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_settings(written(folder, text))
    return str(caught.value)


def test_an_empty_file_is_the_defaults_with_its_own_folder(tmp_path: Path) -> None:
    found = load_settings(written(tmp_path, ""))
    assert found.traces.database == str(tmp_path / "traces.db")
    assert found.traces.spool == str(tmp_path / "traces.spool")
    assert found.model_copy(update={"traces": ServiceSettings().traces}) == ServiceSettings()


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    text = f"""
identity:
  keys:
    - {{name: agent, sha256: "{HASH}", scopes: [mail.read], expires: 2030-01-01T00:00:00Z}}
  jwt: {{issuer: "https://id.example", audience: toolcrib, jwks_file: keys/jwks.json}}
limits: {{body_bytes: 65536, json_depth: 16, subgoals: 4, text_characters: 5000}}
traces: {{database_env: TRACES_URL, spool: /var/spool/t, keep_text: false, retention_days: 30, queue: 100}}
splitter: {{kind: remote, base_url: "https://llm.example/v1", model: small, api_key_env: LLM_KEY, timeout_seconds: 2}}
pool: {{workers: 2, queue: 10, max_wait_ms: 100}}
cache: {{slices: 0, embeddings: 1000}}
confirmation: {{ttl_seconds: 60}}
selector: {{max_tools: 6}}
observations: {{ttl_seconds: 60, cap_characters: 100}}
"""
    found = load_settings(written(tmp_path, text))
    assert found.identity.jwt is not None
    assert found.identity.jwt.jwks_file == str(tmp_path / "keys" / "jwks.json")
    assert found.identity.jwt.audience == ("toolcrib",)
    assert found.traces.spool == "/var/spool/t"
    assert (found.pool.workers, found.selector.max_tools, found.limits.json_depth) == (2, 6, 16)


def test_a_database_by_address_is_not_taken_for_a_path(tmp_path: Path) -> None:
    found = load_settings(written(tmp_path, "traces: {database: 'postgresql://db.example/traces'}"))
    assert found.traces.database == "postgresql://db.example/traces"


def test_all_problems_are_listed_at_once_each_with_its_line(tmp_path: Path) -> None:
    said = problems(
        tmp_path,
        """identity:
  keys:
    - name: agent
      sha256: short
      operater: true
pool:
  workers: "2"
  quue: 3
cahce: {}
""",
    )
    assert "line 4, identity.keys[0].sha256" in said
    assert "line 5, identity.keys[0].operater: unknown key" in said
    assert "line 7, pool.workers" in said
    assert "line 8, pool.quue: unknown key" in said
    assert "line 9, cahce: unknown key" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("traces: {database: 'postgresql://u:hunter2@db.example/t'}", "database_env"),
        ("traces: {database: a.db, database_env: B}", "one of database and database_env"),
        ("splitter: {kind: remote, model: m, base_url: 'https://u:hunter2@llm.example'}", "api_key_env"),
        ("splitter: {kind: remote, model: m, base_url: 'http://llm.example', api_key_env: K}", "https://"),
        ("splitter: {kind: remote, model: m}", "base_url"),
        ("splitter: {kind: rules, model: m}", "only kind: remote"),
        ("identity: {jwt: {issuer: i, audience: a}}", "jwks_url"),
        ("identity: {jwt: {issuer: i, audience: a, jwks_file: f, jwks_url: 'https://x.example'}}", "one of"),
        ("identity: {jwt: {issuer: i, audience: a, jwks_url: 'http://x.example/jwks'}}", "https://"),
        ("identity: {jwt: {issuer: i, audience: a, jwks_url: 'https://u:hunter2@x.example'}}", "password"),
        ("identity: {jwt: {issuer: i, audience: [], jwks_file: f}}", "identity.jwt.audience"),
        ("identity: {jwt: {issuer: i, audience: a, jwks_file: f, algorithms: [HS256]}}", "algorithms[0]"),
        ("identity: {jwt: {issuer: i, audience: a, jwks_file: f, algorithms: [none]}}", "algorithms[0]"),
        ("identity: {jwt: {issuer: i, audience: a, jwks_file: f, roles: {r: {operator: true}}}}", "claims.roles"),
        (f"identity: {{keys: [{{name: a, sha256: '{HASH}'}}, {{name: b, sha256: '{HASH}'}}]}}", "keys[1]"),
        (f"identity: {{keys: [{{name: a, sha256: '{HASH}'}}, {{name: a, sha256: '{HASH[1:]}c'}}]}}", "keys[1]"),
        (f"identity: {{keys: [{{name: a, sha256: '{HASH}', operator: 'yes'}}]}}", "operator"),
        (f"identity: {{keys: [{{name: a, sha256: '{HASH}', cost_ceiling_usd: .nan}}]}}", "cost_ceiling_usd"),
        (f"identity: {{keys: [{{name: a, sha256: '{HASH}', scopes: mail.read}}]}}", "scopes"),
        ("identity: {}\nidentity: {}", "repeated"),
        ("identity: [", "line 2: not readable as YAML"),
        ("[]", "expected keys and values"),
        ("pool: {workers: 0}", "pool.workers"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_no_secret_is_repeated(tmp_path: Path, text: str, said: str) -> None:
    found = problems(tmp_path, text)
    assert said in found
    assert "hunter2" not in found


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_settings(tmp_path / "none.yaml")
