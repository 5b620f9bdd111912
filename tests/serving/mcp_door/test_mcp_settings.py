"""The file of upstream servers: all that is wrong with it is said, with its line, and no value is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from data.cards import Trust
from data.errors import InputError
from serving.mcp_door.settings import load_upstreams


def written(folder: Path, text: str) -> Path:
    path = folder / "upstreams.yaml"
    path.write_text(text)
    return path


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    found = load_upstreams(
        written(
            tmp_path,
            """
            secrets_file: secrets.yaml
            check_seconds: 30
            upstreams:
              forge:
                command: [npx, -y, forge-mcp]
                environment: {FORGE_TOKEN: {env: FORGE_TOKEN}}
                tenant: acme
                trust: trusted
                timeout_seconds: 20
                tools:
                  export: {timeout_seconds: 120, dry_run_argument: dry_run}
              weather:
                url: https://weather.example/mcp
                headers: {Authorization: {secret: weather, prefix: "Bearer "}}
            """,
        )
    )
    forge, weather = found.upstreams["forge"], found.upstreams["weather"]
    assert found.secrets_file == str(tmp_path / "secrets.yaml")
    assert (forge.timeout_of("export"), forge.timeout_of("other")) == (120, 20)
    assert forge.terms("forge").tool_id("forge", "export") == "acme/forge.export"
    assert (forge.trust, weather.trust) == (Trust.TRUSTED, Trust.THIRD_PARTY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("upstreams: {}", "upstreams"),
        ("upstreams: {a: {}}", "give one of url and command"),
        ("upstreams: {a: {url: 'https://x.example', command: x}}", "give one of url and command"),
        ("upstreams: {a: {command: x, headers: {A: {env: B}}}}", "headers are for a url"),
        ("upstreams: {a: {url: 'https://x.example', environment: {A: {env: B}}}}", "environment is for a command"),
        ("upstreams: {a: {url: 'ftp://x.example'}}", "must start with http"),
        ("upstreams: {a: {url: 'https://u:hunter2@x.example'}}", "no password"),
        ("upstreams: {a: {url: 'https://x.example/?key=hunter2'}}", "no query"),
        ("upstreams: {a: {command: x, environment: {A: hunter2}}}", "expected keys and values"),
        ("upstreams: {a: {command: x, environment: {A: {env: B, secret: C}}}}", "give one of env, secret and value"),
        ("upstreams: {a: {command: x}, a.b: {command: x}}", "tools of one id"),
        ("upstreams: {a: {command: x, retries: 3}}", "unknown key"),
    ],
)
def test_what_is_wrong_is_said_without_a_value(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_upstreams(written(tmp_path, text))
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_problems_are_listed_with_their_lines(tmp_path: Path) -> None:
    text = "check_seconds: 0\nupstreams:\n  a:\n    command: x\n    trust: maybe\n"
    with pytest.raises(InputError) as caught:
        load_upstreams(written(tmp_path, text))
    assert "line 1, check_seconds" in str(caught.value)
    assert "line 5, upstreams.a.trust" in str(caught.value)
