"""An identity provider for tests: keys of its own, tokens signed with them, and an address that serves the key set."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://id.example", "toolcrib"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK_RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def jwk(private: Any, kid: str | None, **more: Any) -> dict[str, Any]:
    """The public half as a JSON Web Key."""
    kind = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    maker = next((algorithm for base, algorithm in kind.items() if isinstance(private, base)), OKPAlgorithm)
    entry: dict[str, Any] = maker.to_jwk(private.public_key(), as_dict=True)  # type: ignore[attr-defined]
    entry.pop("key_ops", None)
    return {**entry, **({} if kid is None else {"kid": kid}), **more}


def jwks(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


KEYS = jwks(jwk(RSA, "rsa"), jwk(EC, "ec"), jwk(ED, "ed"))


def claims(**changes: Any) -> dict[str, Any]:
    """Good claims; a change to None leaves the claim out."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": now + 600, "nbf": now - 5, "iat": now - 5}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def token(private: Any = RSA, algorithm: str = "RS256", kid: str | None = "rsa", **changes: Any) -> str:
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), private, algorithm=algorithm, headers=headers)


def encoded(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged(header: dict[str, Any], payload: object, signature: bytes = b"") -> str:
    return ".".join((encoded(header), encoded(payload), encoded(signature)))


class Address:
    """What the issuer's address answers; counts who asked."""

    def __init__(self) -> None:
        self.body, self.status, self.asked, self.url = KEYS, 200, 0, ""


@contextmanager
def served() -> Iterator[Address]:
    """The address, on this machine."""
    address = Address()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address.asked += 1
            self.send_response(address.status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(address.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    address.url = f"http://127.0.0.1:{server.server_address[1]}/jwks"
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
