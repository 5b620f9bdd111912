"""Tokens: a good one gives its claims; whatever is wrong with another, it is refused."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from issuer import (
    AUDIENCE,
    EC,
    ED,
    ISSUER,
    KEYS,
    OTHER_RSA,
    RSA,
    WEAK_RSA,
    Address,
    claims,
    encoded,
    forged,
    jwk,
    jwks,
    served,
    token,
)

from serving.door.grants import JwtSettings
from serving.door.jwks import AddressKeys, FileKeys, KeysUnavailableError, read_jwks
from serving.door.tokens_jwt import TokenChecker, TokenRefusedError


def checker(folder: Path, keys: bytes = KEYS, **changes: Any) -> TokenChecker:
    path = folder / "jwks.json"
    path.write_bytes(keys)
    return TokenChecker(JwtSettings(issuer=ISSUER, audience=(AUDIENCE,), jwks_file=str(path), **changes))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> TokenChecker:
    return checker(tmp_path_factory.mktemp("jwks"))


@pytest.mark.parametrize(
    ("private", "algorithm", "kid"), [(RSA, "RS256", "rsa"), (EC, "ES256", "ec"), (ED, "EdDSA", "ed")]
)
def test_a_good_token_gives_its_claims(shared: TokenChecker, private: Any, algorithm: str, kid: str) -> None:
    assert shared.claims(token(private, algorithm, kid, sub="ann"))["sub"] == "ann"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": int(time.time()) - 60},
        {"exp": None},
        {"exp": "soon"},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"exp": [1]},
        {"nbf": int(time.time()) + 86_400},
        {"nbf": "later"},
        {"iat": int(time.time()) + 86_400},
        {"aud": None},
        {"aud": "another"},
        {"aud": []},
        {"aud": {"toolcrib": 1}},
        {"aud": "toolcri"},
        {"iss": None},
        {"iss": "https://id.example/"},
        {"sub": 7},
    ],
    ids=str,
)
def test_a_token_whose_claims_do_not_hold_is_refused(shared: TokenChecker, changes: dict[str, Any]) -> None:
    with pytest.raises(TokenRefusedError):
        shared.claims(token(**changes))


def test_clocks_may_differ_by_the_leeway(shared: TokenChecker) -> None:
    now = int(time.time())
    assert shared.claims(token(exp=now - 10, nbf=now + 10))


def test_one_of_several_audiences_is_enough(shared: TokenChecker) -> None:
    assert shared.claims(token(aud=["another", AUDIENCE]))


def test_a_claim_that_the_settings_require_must_be_there(tmp_path: Path) -> None:
    strict = checker(tmp_path, require=("nbf",))
    assert strict.claims(token())
    with pytest.raises(TokenRefusedError, match="nbf"):
        strict.claims(token(nbf=None))


def test_a_key_of_the_issuer_cannot_be_swapped_for_another(shared: TokenChecker) -> None:
    for bad in (token(OTHER_RSA), token(RSA, kid="ec"), token(EC, "ES256", kid="rsa"), token(kid="unknown")):
        with pytest.raises(TokenRefusedError):
            shared.claims(bad)


def test_without_a_key_id_only_an_only_key_can_be_meant(tmp_path: Path, shared: TokenChecker) -> None:
    (tmp_path / "two").mkdir()
    two = checker(tmp_path / "two", jwks(jwk(RSA, "a"), jwk(OTHER_RSA, "b")))
    one = checker(tmp_path, jwks(jwk(RSA, None)))
    assert one.claims(token(kid=None))
    with pytest.raises(TokenRefusedError):
        one.claims(token(kid="rsa"))
    with pytest.raises(TokenRefusedError):
        two.claims(token(kid=None))


def test_two_keys_may_share_an_id_while_one_replaces_the_other(tmp_path: Path) -> None:
    both = checker(tmp_path, jwks(jwk(OTHER_RSA, "rsa"), jwk(RSA, "rsa")))
    assert both.claims(token())
    assert both.claims(token(OTHER_RSA))


def test_none_is_no_algorithm_in_any_case_of_letters(shared: TokenChecker) -> None:
    for name in ("none", "None", "NONE", "nOnE", "", None, 0, ["RS256"]):
        for signature in (b"", b"x"):
            with pytest.raises(TokenRefusedError):
                shared.claims(forged({"alg": name, "kid": "rsa"}, claims(), signature))


def test_a_public_key_is_not_taken_for_a_shared_secret(shared: TokenChecker) -> None:
    public = RSA.public_key()
    secrets = (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(jwk(RSA, "rsa")).encode(),
    )
    for secret in secrets:
        signed = f"{encoded({'alg': 'HS256', 'kid': 'rsa'})}.{encoded(claims())}"
        mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        with pytest.raises(TokenRefusedError):
            shared.claims(f"{signed}.{encoded(mac)}")


def test_a_shared_secret_in_the_key_set_is_passed_over(tmp_path: Path) -> None:
    secret = b"s" * 32
    mixed = checker(tmp_path, jwks({"kty": "oct", "k": encoded(secret), "kid": "hs", "alg": "HS256"}, jwk(RSA, "rsa")))
    with pytest.raises(TokenRefusedError):
        mixed.claims(jwt.encode(claims(), secret, algorithm="HS256", headers={"kid": "hs"}))
    assert mixed.claims(token())


def test_only_algorithms_of_the_list_count_and_only_the_keys_own(tmp_path: Path, shared: TokenChecker) -> None:
    with pytest.raises(TokenRefusedError):
        shared.claims(token(RSA, "RS512"))
    wider = checker(tmp_path, jwks(jwk(RSA, "rsa", alg="RS256")), algorithms=("RS256", "RS512"))
    assert wider.claims(token())
    with pytest.raises(TokenRefusedError):
        wider.claims(token(RSA, "RS512"))


def test_a_key_that_a_token_brings_along_is_not_looked_at(shared: TokenChecker) -> None:
    for extra in (
        {"jwk": jwk(OTHER_RSA, "rsa")},
        {"jku": "https://evil.example/jwks"},
        {"x5u": "https://evil.example/cert"},
        {"crit": ["exp"]},
        {"b64": False, "crit": ["b64"]},
    ):
        made = jwt.encode(claims(), OTHER_RSA, algorithm="RS256", headers={"kid": "rsa", **extra})
        with pytest.raises(TokenRefusedError):
            shared.claims(made)


def test_keys_for_encryption_and_weak_keys_sign_nothing(tmp_path: Path) -> None:
    for number, keys in enumerate(
        (jwks(jwk(RSA, "rsa", use="enc")), jwks(jwk(RSA, "rsa", key_ops=["encrypt"])), jwks(jwk(WEAK_RSA, "rsa")))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        private = WEAK_RSA if number == 2 else RSA
        with pytest.warns() if number == 2 else pytest.MonkeyPatch.context():  # signing with the weak key warns
            made = token(private)
        with pytest.raises(TokenRefusedError):
            checker(folder, keys).claims(made)


good = token()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(good) - 1), st.sampled_from("ABCxyz019-_.=+/ \n"))
def test_a_token_with_any_one_character_changed_is_refused(shared: TokenChecker, place: int, other: str) -> None:
    changed = good[:place] + other + good[place + 1 :]
    if changed != good:
        with pytest.raises(TokenRefusedError):
            shared.claims(changed)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80) | st.builds(".".join, st.lists(st.binary(max_size=30).map(encoded), max_size=4)))
def test_anything_else_is_refused_and_nothing_breaks(shared: TokenChecker, text: str) -> None:
    with pytest.raises(TokenRefusedError):
        shared.claims(text)


def test_another_payload_under_a_good_signature_is_refused(shared: TokenChecker) -> None:
    header, _, signature = good.split(".")
    with pytest.raises(TokenRefusedError):
        shared.claims(f"{header}.{encoded(claims(sub='root'))}.{signature}")


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b'{"keys": {}}', b"\xff", b"[" * 100_000])
def test_what_is_no_key_set_is_an_error_and_an_empty_set_is_none(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(raw)
    with pytest.raises(KeysUnavailableError, match=r"jwks\.json"):
        FileKeys(path).keys(None)
    assert read_jwks(b'{"keys": []}', "") == ()


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {},
        {"kty": "RSA"},
        {"kty": "RSA", "n": 3, "e": []},
        {"kty": "RSA", "n": "", "e": ""},
        {"kty": "EC", "crv": "P-256", "x": None, "y": {}},
        {"kty": "EC", "crv": ["P-256"]},
        {"kty": ["RSA"], "n": "AQ", "e": "AQ"},
        {"kty": "OKP", "crv": "Ed25519", "x": 1},
        {"kty": "OKP", "crv": "P-256", "x": "AA"},
        {"kty": "EC", "crv": "Ed25519", "x": "AA", "y": "AA"},
    ],
    ids=str,
)
def test_a_broken_key_is_passed_over_beside_a_good_one(tmp_path: Path, entry: Any) -> None:
    assert checker(tmp_path, json.dumps({"keys": [entry, jwk(RSA, "rsa")]}).encode()).claims(token())


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def address() -> Any:
    with served() as found:
        yield found


def by_address(address: Address, clock: Clock, **changes: Any) -> TokenChecker:
    about = JwtSettings(issuer=ISSUER, audience=(AUDIENCE,), jwks_url=address.url, **changes)
    return TokenChecker(about, AddressKeys(about, clock=clock))


def test_keys_are_asked_for_once_and_again_when_they_are_old(address: Address) -> None:
    clock = Clock()
    tokens = by_address(address, clock, refresh_seconds=300)
    for _ in range(3):
        assert tokens.claims(token())
    assert address.asked == 1
    clock.now += 301
    assert tokens.claims(token())
    assert address.asked == 2


def test_a_key_that_the_issuer_withdraws_is_gone_after_the_refresh(address: Address) -> None:
    clock = Clock()
    tokens = by_address(address, clock)
    assert tokens.claims(token())
    address.body = jwks(jwk(OTHER_RSA, "new"))
    clock.now += 301
    with pytest.raises(TokenRefusedError):
        tokens.claims(token())


def test_a_new_key_is_found_at_once_and_strange_ids_ask_at_most_every_so_often(address: Address) -> None:
    clock = Clock()
    tokens = by_address(address, clock, refetch_seconds=30)
    assert tokens.claims(token())
    clock.now += 31
    address.body = jwks(jwk(RSA, "rsa"), jwk(OTHER_RSA, "new"))
    assert tokens.claims(token(OTHER_RSA, kid="new"))
    assert address.asked == 2
    for number in range(20):
        with pytest.raises(TokenRefusedError):
            tokens.claims(token(OTHER_RSA, kid=f"strange{number}"))
    assert address.asked == 2


@pytest.mark.parametrize(
    ("status", "body"), [(500, b""), (302, KEYS), (200, b"<html>"), (200, b" " * 1_100_000), (404, KEYS)]
)
def test_an_issuer_that_is_down_costs_nothing_until_the_keys_are_too_old(
    address: Address, status: int, body: bytes
) -> None:
    clock = Clock()
    tokens = by_address(address, clock, refresh_seconds=300, stale_seconds=3600)
    assert tokens.claims(token())
    address.status, address.body = status, body
    clock.now += 3000
    assert tokens.claims(token())
    assert tokens.claims(token())
    assert address.asked == 2
    clock.now += 901
    with pytest.raises(KeysUnavailableError):
        tokens.claims(token())
    address.status, address.body = 200, KEYS
    clock.now += 31
    assert tokens.claims(token())


def test_an_issuer_that_was_never_up_is_told_apart_from_a_bad_token(address: Address) -> None:
    clock = Clock()
    address.status = 503
    tokens = by_address(address, clock)
    for _ in range(3):
        with pytest.raises(KeysUnavailableError):
            tokens.claims(token())
    assert address.asked == 1


def test_a_token_with_a_forbidden_algorithm_asks_nobody(address: Address) -> None:
    with pytest.raises(TokenRefusedError):
        by_address(address, Clock()).claims(forged({"alg": "HS256", "kid": "x"}, claims()))
    assert address.asked == 0
