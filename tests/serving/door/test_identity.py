"""Who is asking: keys and tokens let in what the file grants now, and everything else is refused the same way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from issuer import AUDIENCE, ISSUER, KEYS, OTHER_RSA, served, token
from starlette.datastructures import Headers

from data.context import Caller
from data.errors import InputError
from serving.door.errors import DoorError, as_json
from serving.door.identity import Authenticator, Identity, is_loopback
from serving.door.keys import digest, is_key, new_key
from serving.door.settings import load_identity

KEY, OTHER = new_key(), new_key()


def write(path: Path, *keys: dict[str, Any], **more: Any) -> Path:
    path.write_text(json.dumps({"identity": {"keys": list(keys), **more}}))  # JSON is YAML too
    return path


def entry(key: str = KEY, name: str = "agent", **granted: Any) -> dict[str, Any]:
    return {"name": name, "sha256": digest(key), **granted}


def authenticator(path: Path, **options: Any) -> Authenticator:
    return Authenticator(load_identity(path), source=path, **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "service.yaml", entry(scopes=["mail.read"], tenant="acme", envs=["prod", "test"]))


def sent(*pairs: tuple[str, str]) -> Headers:
    """Headers as the server gives them: repeated ones stay apart, bytes are read as Latin-1."""
    return Headers(raw=[(name.lower().encode(), value.encode("latin-1")) for name, value in pairs])


def bearer(credential: str) -> Headers:
    return sent(("Authorization", f"Bearer {credential}"))


def refusal(who: Authenticator, headers: Mapping[str, str], client: str = "203.0.113.9") -> DoorError:
    with pytest.raises(DoorError) as caught:
        who.identify(headers, client)
    return caught.value


def with_tokens(folder: Path, **more: Any) -> Path:
    (folder / "jwks.json").write_bytes(KEYS)
    return write(
        folder / "service.yaml",
        jwt={"issuer": ISSUER, "audience": AUDIENCE, "jwks_file": "jwks.json", **more},
    )


# keys


def test_a_key_gives_what_the_file_grants_it_by_either_header(file: Path) -> None:
    who = authenticator(file)
    expected = Identity(
        "agent",
        Caller(principal="agent", tenant="acme", scopes=("mail.read",), env="prod"),
        envs=("prod", "test"),
    )
    assert who.identify(bearer(KEY)) == expected
    assert who.identify(sent(("X-API-Key", KEY))) == expected
    assert who.identify({"authorization": f"bearer {KEY}"}) == expected


def test_no_explicit_grant_is_no_grant(tmp_path: Path) -> None:
    found = authenticator(write(tmp_path / "s.yaml", entry())).identify(bearer(KEY))
    assert found == Identity("agent", Caller(principal="agent"))


def test_rights_are_those_of_the_key(tmp_path: Path) -> None:
    path = write(tmp_path / "s.yaml", entry(operator=True), entry(OTHER, "backend", may_act_for=True, may_confirm=True))
    who = authenticator(path)
    first, second = who.identify(bearer(KEY)), who.identify(bearer(OTHER))
    assert (first.operator, first.may_act_for, first.may_confirm) == (True, False, False)
    assert (second.operator, second.may_act_for, second.may_confirm) == (False, True, True)


def test_new_keys_differ_and_only_their_hash_is_kept() -> None:
    keys = {new_key() for _ in range(50)}
    assert len(keys) == 50
    assert all(is_key(key) and len(digest(key)) == 64 and key not in digest(key) for key in keys)


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", f"Bearer {OTHER}")],
        [("Authorization", f"Bearer {KEY[:-1]}")],
        [("Authorization", f"Bearer {KEY}x")],
        [("Authorization", f"Bearer {KEY.upper()}")],
        [("Authorization", f"Bearer  {KEY}")],
        [("Authorization", f"Bearer {KEY} ")],
        [("Authorization", f"Bearer {KEY[:20]} {KEY[20:]}")],
        [("Authorization", f"Bearer {KEY}\t")],
        [("Authorization", f"Bearer {KEY}\n")],
        [("Authorization", f"Bearer {digest(KEY)}")],
        [("Authorization", f"Basic {KEY}")],
        [("Authorization", f"Bearer{KEY}")],
        [("Authorization", f"Bearer {KEY}, Bearer {KEY}")],
        [("Authorization", KEY)],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer ")],
        [("Authorization", "")],
        [("Authorization", "Bearer \xe9\xff\x00")],
        [("Authorization", "Bearer " + "a" * 20_000)],
        [("Authorization", "Bearer a.b.c")],
        [("X-API-Key", "")],
        [("X-API-Key", f" {KEY}")],
        [("X-API-Key", f"Bearer {KEY}")],
        [("X-API-Key", "\xe9" * 47)],
        [("X-API-Key", "tck_" + "\xb2" * 43)],
    ],
    ids=lambda pairs: repr(pairs)[:60],
)
def test_what_is_not_a_known_key_gets_one_and_the_same_401(file: Path, headers: list[tuple[str, str]]) -> None:
    error = refusal(authenticator(file), sent(*headers))
    assert (error.status, error.code, error.message) == (401, "unauthenticated", "the credential is not accepted")
    assert error.headers == {"WWW-Authenticate": 'Bearer realm="toolcrib", error="invalid_token"'}
    assert KEY[4:20] not in json.dumps(as_json(error))


def test_no_credential_is_a_401_with_the_plain_challenge(file: Path) -> None:
    error = refusal(authenticator(file), sent(("Cookie", f"key={KEY}")))
    assert (error.status, error.headers) == (401, {"WWW-Authenticate": 'Bearer realm="toolcrib"'})


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", f"Bearer {KEY}"), ("Authorization", f"Bearer {KEY}")],
        [("Authorization", f"Bearer {KEY}"), ("Authorization", f"Bearer {OTHER}")],
        [("Authorization", f"Bearer {KEY}"), ("X-API-Key", KEY)],
        [("X-API-Key", KEY), ("x-api-key", OTHER)],
        [("X-API-Key", ""), ("Authorization", f"Bearer {KEY}")],
    ],
    ids=len,
)
def test_two_credentials_are_none(file: Path, headers: list[tuple[str, str]]) -> None:
    error = refusal(authenticator(file), sent(*headers))
    assert (error.status, error.message) == (401, "more than one credential")


def test_a_key_ends_when_it_expires(tmp_path: Path) -> None:
    path = write(tmp_path / "s.yaml", entry(expires="2030-01-01T00:00:00Z"))
    now = [1893455999.0]
    who = authenticator(path, clock=lambda: now[0])
    assert who.identify(bearer(KEY))
    now[0] += 1
    assert refusal(who, bearer(KEY)).status == 401


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["authorization", "x-api-key"]), st.text(st.characters(max_codepoint=255), max_size=60))
def test_any_header_is_answered_with_401_and_nothing_breaks(name: str, value: str) -> None:
    assert refusal(ANY, sent((name, value))).status == 401


ANY = Authenticator(load_identity(Path(os.devnull)).model_copy(update={"keys": ()}), dev=True)


# the file changes


def test_a_changed_grant_holds_from_the_next_request_on(file: Path) -> None:
    who = authenticator(file)
    assert who.identify(bearer(KEY)).caller.scopes == ("mail.read",)
    write(file, entry(scopes=["mail.send"]))
    assert who.identify(bearer(KEY)).caller.scopes == ("mail.send",)
    write(file, entry(OTHER))
    assert refusal(who, bearer(KEY)).status == 401
    assert who.identify(bearer(OTHER))
    write(file)
    assert refusal(who, bearer(OTHER)).status == 401


def test_a_change_of_the_same_length_at_the_same_moment_is_seen(file: Path) -> None:
    who = authenticator(file)
    moment = os.stat(file)
    for scope in ("mail.aaaa", "mail.bbbb", "mail.cccc"):
        write(file, entry(scopes=[scope]))
        os.utime(file, ns=(moment.st_atime_ns, moment.st_mtime_ns))
        assert who.identify(bearer(KEY)).caller.scopes == (scope,)


def test_a_file_put_in_place_whole_is_seen(file: Path, tmp_path: Path) -> None:
    who = authenticator(file)
    assert who.identify(bearer(KEY))
    os.replace(write(tmp_path / "new.yaml", entry(OTHER)), file)
    assert refusal(who, bearer(KEY)).status == 401


@pytest.mark.parametrize(
    "text",
    ["identity: {keys: [", "identity: {keyz: []}", "identity: {keys: [{name: a}]}", "- a", "\xff\xfe", "identity: 3"],
)
def test_while_the_file_is_broken_nobody_is_let_in_by_what_it_said_before(file: Path, text: str) -> None:
    who = authenticator(file)
    assert who.identify(bearer(KEY))
    good = file.read_text()
    file.write_bytes(text.encode("latin-1"))
    for _ in range(2):
        error = refusal(who, bearer(KEY))
        assert (error.status, error.code) == (503, "identity_unavailable")
        assert "Retry-After" in error.headers
        assert str(file) not in json.dumps(as_json(error))
    file.write_text(good)
    assert who.identify(bearer(KEY))


def test_a_file_that_is_gone_lets_nobody_in(file: Path) -> None:
    who = authenticator(file, dev=True)
    assert who.identify(bearer(KEY))
    file.unlink()
    assert refusal(who, bearer(KEY)).status == 503
    assert refusal(who, sent(), "127.0.0.1").status == 503


def test_what_is_wrong_elsewhere_in_the_file_shuts_nobody_out(file: Path) -> None:
    who = authenticator(file)
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "pool": {"wrokers": 3}}))
    assert who.identify(bearer(KEY))


def test_an_unchanged_file_is_not_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(file, ns=(1, 1))
    from serving.door import identity, watched  # noqa: PLC0415

    reads = []
    load = identity.load_identity
    monkeypatch.setattr(identity, "load_identity", lambda path: reads.append(path) or load(path))  # type: ignore[func-returns-value]
    monkeypatch.setattr(watched, "_SETTLED_NS", -1)
    who = authenticator(file)
    for _ in range(5):
        who.identify(bearer(KEY))
    assert len(reads) == 1


# tokens


def test_a_token_says_who_and_its_roles_add_what_they_grant(tmp_path: Path) -> None:
    path = with_tokens(
        tmp_path,
        claims={"tenant": "org", "roles": "realm.roles", "connections": "https://x.example/links"},
        roles={
            "clerk": {"scopes": ["crm.read"], "flags": ["beta"]},
            "lead": {"connections": ["crm"], "may_confirm": True},
            "root": {"operator": True, "may_act_for": True},
        },
        envs=["prod"],
        regions=["eu", "us"],
        cost_ceiling_usd=2,
    )
    made = token(
        sub="ann",
        org="acme",
        scope="mail.read  mail.send",
        realm={"roles": ["clerk", "lead", "unknown"]},
        **{"https://x.example/links": ["mail"]},
    )
    found = authenticator(path).identify(bearer(made))
    assert found == Identity(
        "jwt",
        Caller(
            principal="ann",
            tenant="acme",
            scopes=("crm.read", "mail.read", "mail.send"),
            connections=("crm", "mail"),
            env="prod",
            region="eu",
            flags=("beta",),
            roles=("clerk", "lead", "unknown"),
            cost_ceiling_usd=2.0,
        ),
        may_confirm=True,
        envs=("prod",),
        regions=("eu", "us"),
    )


def test_a_claim_that_the_file_does_not_name_grants_nothing(tmp_path: Path) -> None:
    who = authenticator(with_tokens(tmp_path, claims={"scopes": None}))
    made = token(scope="mail.read", roles=["root"], operator=True, tenant="acme", flags=["beta"], connections=["mail"])
    assert who.identify(bearer(made)) == Identity("jwt", Caller(principal="ann"))


@pytest.mark.parametrize(
    "changes",
    [
        {"sub": None},
        {"sub": ""},
        {"sub": "a\u0000b"},
        {"sub": "x" * 300},
        {"org": None},
        {"org": ["acme"]},
        {"scope": 7},
        {"scope": {"mail.read": True}},
        {"scope": ["mail.read", 7]},
        {"scope": ["mail.read", ""]},
        {"scope": ["s"] * 2000},
        {"roles": True},
    ],
    ids=lambda changes: repr(changes)[:40],
)
def test_a_good_token_that_does_not_say_whose_it_is_is_forbidden(tmp_path: Path, changes: dict[str, Any]) -> None:
    who = authenticator(with_tokens(tmp_path, claims={"tenant": "org", "roles": "roles"}))
    assert who.identify(bearer(token(org="acme")))
    error = refusal(who, bearer(token(**{"org": "acme", **changes})))
    assert (error.status, error.code) == (403, "not_permitted")


def test_a_bad_token_is_told_nothing_more_than_a_bad_key(tmp_path: Path) -> None:
    who = authenticator(with_tokens(tmp_path))
    for bad in (token(OTHER_RSA), token(aud="another"), token(exp=1), token(kid="x"), "a.b.c", OTHER):
        error = refusal(who, bearer(bad))
        assert (error.status, error.message) == (401, "the credential is not accepted")


def test_a_token_is_no_api_key(tmp_path: Path) -> None:
    who = authenticator(with_tokens(tmp_path))
    assert refusal(who, sent(("X-API-Key", token()))).status == 401


def test_without_keys_of_the_issuer_the_answer_is_503(tmp_path: Path) -> None:
    path = with_tokens(tmp_path)
    who = authenticator(path)
    (tmp_path / "jwks.json").write_text("{}")
    assert refusal(who, bearer(token())).status == 503


def test_a_changed_role_holds_at_once_and_the_issuers_keys_are_not_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "service.yaml"
    with served() as address:

        def grant(*scopes: str) -> None:
            roles = {"clerk": {"scopes": list(scopes)}}
            about = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": address.url, "claims": {"roles": "roles"}}
            write(path, jwt={**about, "roles": roles})

        grant("a")
        who = authenticator(path)
        made = bearer(token(roles=["clerk"]))
        assert who.identify(made).caller.scopes == ("a",)
        address.status = 500
        grant("b")
        assert who.identify(made).caller.scopes == ("b",)
        assert address.asked == 1


# development


def test_nobody_could_be_let_in_is_said_at_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--dev"):
        authenticator(write(tmp_path / "s.yaml"))


@pytest.mark.parametrize("client", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_dev_lets_this_machine_in_without_a_credential(tmp_path: Path, client: str) -> None:
    who = authenticator(write(tmp_path / "s.yaml", dev={"tenant": "acme", "scopes": ["mail.read"]}), dev=True)
    found = who.identify(sent(("Host", "localhost:8700")), client)
    assert found == Identity("dev", Caller(principal="dev", tenant="acme", scopes=("mail.read",)))


def test_dev_without_a_file_may_do_everything_at_the_door() -> None:
    found = ANY.identify(sent(("Host", "127.0.0.1:8700")), "127.0.0.1")
    assert (found.name, found.may_act_for, found.operator, found.may_confirm) == ("dev", True, True, True)


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        ([], "203.0.113.9"),
        ([], "10.0.0.1"),
        ([], ""),
        ([], "testclient"),
        ([("X-Forwarded-For", "127.0.0.1")], "127.0.0.1"),
        ([("Forwarded", "for=127.0.0.1")], "127.0.0.1"),
        ([("X-Real-IP", "127.0.0.1")], "127.0.0.1"),
        ([("Via", "1.1 proxy")], "127.0.0.1"),
        ([("Host", "rebound.example:8700")], "127.0.0.1"),
        ([("Host", "127.0.0.1.evil.example")], "127.0.0.1"),
        ([("Host", "evil.example@127.0.0.1:x[")], "127.0.0.1"),
        ([("Host", "localhost"), ("Origin", "https://evil.example")], "127.0.0.1"),
        ([("Host", "localhost"), ("Origin", "null")], "127.0.0.1"),
        ([("Host", "localhost"), ("Host", "evil.example")], "127.0.0.1"),
    ],
    ids=repr,
)
def test_dev_lets_nobody_in_from_elsewhere(headers: list[tuple[str, str]], client: str) -> None:
    assert refusal(ANY, sent(*headers), client).status == 401


def test_without_dev_this_machine_needs_a_credential_too(file: Path) -> None:
    assert refusal(authenticator(file), sent(("Host", "localhost")), "127.0.0.1").status == 401


def test_a_wrong_credential_is_refused_under_dev_too(file: Path) -> None:
    assert refusal(authenticator(file, dev=True), bearer(OTHER), "127.0.0.1").status == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "example.com", "192.168.1.4", "localhost.example"])
def test_an_address_that_others_can_reach_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)
