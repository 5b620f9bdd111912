"""The document describes the service: what fits it is served, what does not is refused, and no answer surprises it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import ignored_auth
from shop import KEYS, Shop, open_shop

from serving.door.errors import CODES

OPERATIONS = [
    ("POST", "/v1/select"),
    ("POST", "/v1/describe"),
    ("POST", "/v1/check"),
    ("POST", "/v1/confirm"),
    ("POST", "/v1/outcomes"),
    ("POST", "/v1/observations"),
    ("GET", "/v1/observations/{handle}"),
    ("POST", "/v1/rerank"),
    ("GET", "/v1/slices/{slice_id}"),
    ("GET", "/v1/explain"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
]
REFUSED = [400, 401, 403, 404, 405, 409, 413, 415, 422]
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
MADE_UP = [
    (method, path, mode)
    for method, path in OPERATIONS
    for mode in MODES
    if path.startswith("/v1")
    and (path not in ("/v1/select", "/v1/slices/{slice_id}") or mode is GenerationMode.POSITIVE)
]
"""Any text may be the id of a slice; making up what breaks the large schema of `select` takes very long, and the edges
of the document have it."""
COVERED = 15
"""Cases at the edges of the document, a route: too long, too many, another type, another method, ..."""
BOUNDED = settings(
    max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck]
)


def configured() -> SchemathesisConfig:
    """No credentials of its own, and names in ASCII: which of all other characters are printable, no pattern says."""
    return SchemathesisConfig.from_dict(
        {
            "seed": 1,
            "generation": {"with-security-parameters": False, "codec": "ascii", "deterministic": True},
            "checks": {"negative_data_rejection": {"expected-statuses": REFUSED}},
        }
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    allowed_all = {"otto": {"operator": True, "may_confirm": True, "may_act_for": True}}
    with open_shop(tmp_path_factory.mktemp("shop"), people=allowed_all) as opened:
        yield opened


@pytest.fixture(scope="module")
def document(shop: Shop) -> dict[str, Any]:
    made: dict[str, Any] = shop.client.get("/openapi.json").json()
    return made


@pytest.fixture(scope="module")
def schema(document: dict[str, Any]) -> BaseSchema:
    return schemathesis.openapi.from_dict(document, config=configured())


def send(shop: Shop, case: schemathesis.Case) -> None:
    """Send a case and hold the answer against the document, by all of Schemathesis' checks."""
    sent = case.as_transport_kwargs(base_url="http://testserver")
    headers = {**dict(sent.pop("headers", None) or {}), "X-API-Key": KEYS["otto"]}
    sent.pop("cookies", None)
    answer: httpx.Response = shop.client.request(**sent, headers=headers)
    case.validate_response(answer, excluded_checks=[ignored_auth])


def operation(schema: BaseSchema, method: str, path: str) -> APIOperation:
    found: APIOperation = schema[path][method]
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_the_edges_of_the_document_hold(shop: Shop, schema: BaseSchema, method: str, path: str) -> None:
    found = operation(schema, method, path)
    cases = schema.iter_coverage_cases(found, generation_modes=MODES, generation_config=schema.config.generation)
    sent = 0
    for case in islice(cases, COVERED):
        send(shop, case)
        sent += 1
    assert sent


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("method", "path", "mode"), MADE_UP)
def test_what_is_made_up_by_the_document_and_against_it_is_answered_as_it_says(
    shop: Shop, schema: BaseSchema, method: str, path: str, mode: GenerationMode
) -> None:
    @BOUNDED
    @given(operation(schema, method, path).as_strategy(generation_mode=mode))
    def run(case: schemathesis.Case) -> None:
        send(shop, case)

    run()


# the document itself


def test_every_route_is_in_the_document_and_no_other(document: dict[str, Any]) -> None:
    assert {(method.upper(), path) for path, item in document["paths"].items() for method in item} == set(OPERATIONS)


def test_every_route_has_an_example_of_its_request_or_its_answer(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for method, found in item.items():
            if method == "post":
                (content,) = found["requestBody"]["content"].values()
                assert content["examples"], path
            elif found.get("parameters"):
                assert any(one.get("example") or one["schema"].get("examples") for one in found["parameters"]), path
            else:
                (content,) = found["responses"]["200"]["content"].values()
                assert content["example"], path


def test_every_error_status_is_in_the_document_with_the_one_form(document: dict[str, Any]) -> None:
    statuses = {str(status) for status, _ in CODES.values()}
    for path, item in document["paths"].items():
        for found in item.values() if path.startswith("/v1") else ():
            assert statuses <= found["responses"].keys()
            for status in statuses:
                schema = found["responses"][status]["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Error"}, (path, status)
            assert found["security"], path
    assert document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"] == sorted(
        CODES
    )


def test_the_examples_of_the_bodies_are_answered(shop: Shop, document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for method, found in item.items():
            for content in found.get("requestBody", {}).get("content", {}).values():
                for example in content["examples"].values():
                    answer = shop.send(method.upper(), path, "otto", json=example["value"])
                    assert answer.status_code in (200, 404), (path, answer.text)
