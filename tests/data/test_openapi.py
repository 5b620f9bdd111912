"""OpenAPI: operations as tools, their parameters and bodies as one schema, references that cannot run away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.errors import InputError
from data.importers import import_catalog

ORDER_YAML = """
openapi: 3.0.3
info: {title: Shop, version: 2024-01-02}
paths:
  /orders/{id}:
    parameters:
      - {name: id, in: path, required: true, description: The order, schema: {type: string}}
      - {name: trace, in: header, schema: {type: boolean}}
      - {name: Authorization, in: header, schema: {type: string}}
    get:
      operationId: getOrder
      summary: One order
      description: Everything about one order.
    delete:
      summary: Remove an order.
    put:
      operationId: updateOrder
      parameters:
        - {name: trace, in: header, description: Keep a trace, schema: {type: boolean}}
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Order'}
components:
  schemas:
    Order:
      allOf:
        - {$ref: '#/components/schemas/Base'}
        - type: object
          required: [lines]
          properties:
            lines: {type: array, items: {$ref: '#/components/schemas/Line'}}
            note: {type: string, nullable: true, example: x}
    Base:
      type: object
      properties:
        number: {type: integer, readOnly: true}
        id: {type: string, description: A new id}
    Line:
      type: object
      properties:
        parts: {type: array, items: {$ref: '#/components/schemas/Line'}}
        price: {type: number, minimum: 0, exclusiveMinimum: true}
"""


def document(folder: Path, paths: dict[str, Any], **more: Any) -> Path:
    path = folder / "shop.json"
    path.write_text(json.dumps({"openapi": "3.1.0", "paths": paths, **more}))
    return path


def shop(folder: Path, **options: Any) -> Catalog:
    path = folder / "shop.yaml"
    path.write_text(ORDER_YAML)
    return import_catalog(path, "openapi", **options)[0]


def only(path: Path) -> ToolCard:
    (card,) = import_catalog(path, "openapi")[0]
    return card


def test_each_operation_is_a_tool_whose_method_says_its_risk(tmp_path: Path) -> None:
    catalog = shop(tmp_path)
    assert {card.tool_id: card.risk for card in catalog} == {
        "shop.getOrder": Risk.READ_ONLY,
        "shop.updateOrder": Risk.WRITE,
        "shop.delete_orders_id": Risk.DESTRUCTIVE,
    }
    assert {card.trust for card in catalog} == {Trust.THIRD_PARTY}


def test_the_documents_title_and_description_are_its_servers(tmp_path: Path) -> None:
    paths = {"/x": {"get": {"operationId": "x", "summary": "x"}}}
    info = {"title": "Shop", "description": "Orders and parcels."}
    assert only(document(tmp_path, paths, info=info)).server_description == "Shop. Orders and parcels."
    assert only(document(tmp_path, paths)).server_description == ""


@pytest.mark.parametrize(
    ("method", "name", "risk"),
    [
        ("get", "resetPassword", Risk.DESTRUCTIVE),
        ("get", "sendMail", Risk.WRITE),
        ("get", "listOrders", Risk.READ_ONLY),
        ("head", "orders", Risk.READ_ONLY),
        ("post", "searchOrders", Risk.WRITE),
        ("delete", "listOrders", Risk.DESTRUCTIVE),
    ],
)
@pytest.mark.parametrize("trust", list(Trust))
def test_a_verb_in_the_name_raises_the_methods_risk_and_never_lowers_it(
    tmp_path: Path, method: str, name: str, risk: Risk, trust: Trust
) -> None:
    path = document(tmp_path, {"/x": {method: {"operationId": name, "summary": "x"}}})
    (card,) = import_catalog(path, "openapi", trust=trust)[0]
    assert card.risk is risk


def test_summary_and_description_are_taken_apart_and_one_alone_is_the_description(tmp_path: Path) -> None:
    catalog = shop(tmp_path)
    get, delete = catalog["shop.getOrder"], catalog["shop.delete_orders_id"]
    assert (get.summary, get.description) == ("One order", "Everything about one order.")
    assert (delete.summary, delete.description) == ("", "Remove an order.")


def test_parameters_and_body_become_one_schema(tmp_path: Path) -> None:
    schema = shop(tmp_path)["shop.updateOrder"].input_schema
    properties = schema["properties"]
    assert list(properties) == ["id", "trace", "body_id", "lines", "note"]
    assert schema["required"] == ["id", "lines"]
    assert properties["id"] == {"type": "string", "description": "The order"}
    assert properties["trace"]["description"] == "Keep a trace"
    assert properties["note"] == {"type": ["string", "null"]}


def test_a_schema_of_itself_is_kept_once_and_still_validates_arguments(tmp_path: Path) -> None:
    schema = shop(tmp_path)["shop.updateOrder"].input_schema
    assert list(schema["$defs"]) == ["Line"]
    assert schema["$defs"]["Line"]["properties"]["price"] == {"type": "number", "exclusiveMinimum": 0}
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"id": "1", "lines": [{"parts": [{"parts": [], "price": 1}]}]})
    assert not validator.is_valid({"id": "1", "lines": [{"parts": [{"price": 0}]}]})
    assert not validator.is_valid({"id": "1"})


def test_references_that_double_at_each_step_stay_small(tmp_path: Path) -> None:
    schemas: dict[str, Any] = {
        f"S{n}": {"properties": {k: {"$ref": f"#/components/schemas/S{n + 1}"} for k in "ab"}} for n in range(40)
    }
    schemas["S40"] = {"type": "string"}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
    path = document(tmp_path, {"/x": {"post": {"requestBody": body}}}, components={"schemas": schemas})
    card = only(path)
    assert len(card.input_schema["$defs"]) == 40
    assert len(json.dumps(card.input_schema)) < 10_000


def test_a_body_that_is_no_plain_object_is_one_parameter(tmp_path: Path) -> None:
    choice = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    body = {
        "required": True,
        "description": "Names",
        "content": {"text/plain": {}, "application/json": {"schema": choice}},
    }
    schema = only(document(tmp_path, {"/x": {"post": {"requestBody": body}}})).input_schema
    assert schema["properties"] == {"body": {**choice, "description": "Names"}}
    assert schema["required"] == ["body"]


def test_nothing_of_an_optional_body_is_required(tmp_path: Path) -> None:
    raw = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    body = {"content": {"application/json": {"schema": raw}}}
    schema = only(document(tmp_path, {"/x": {"post": {"requestBody": body}}})).input_schema
    assert "required" not in schema


def test_parameters_and_bodies_may_be_references_and_keys_may_hold_slashes(tmp_path: Path) -> None:
    components = {
        "parameters": {"page/size": {"name": "size", "in": "query", "content": {"a": {"schema": {"type": "integer"}}}}},
        "requestBodies": {"b": {"content": {"application/vnd.x+json": {"schema": {"type": "string"}}}}},
    }
    operation = {
        "parameters": [{"$ref": "#/components/parameters/page~1size"}],
        "requestBody": {"$ref": "#/components/requestBodies/b"},
    }
    card = only(document(tmp_path, {"/x": {"post": operation}}, components=components))
    assert card.input_schema["properties"] == {"size": {"type": "integer"}, "body": {"type": "string"}}


LOOP = {"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}}


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ("x", "paths./x.post"),
        ({"operationId": 1}, "paths./x.post.operationId"),
        ({"parameters": {"a": 1}}, "paths./x.post.parameters"),
        ({"parameters": [{"in": "query"}]}, "paths./x.post.parameters.0"),
        ({"parameters": [{"name": "a", "schema": [1]}]}, "paths./x.post.schema"),
        ({"parameters": [{"$ref": "other.yaml#/a"}]}, "paths./x.post.$ref"),
        ({"parameters": [{"name": "a", "schema": {"$ref": "#/nowhere"}}]}, "paths./x.post.$ref"),
        ({"parameters": [{"name": "a", "schema": {"$ref": 7}}]}, "paths./x.post.$ref"),
        ({"requestBody": {"$ref": "#/components/schemas/A"}}, "paths./x.post.$ref"),
        ({"requestBody": {}}, "paths./x.post.requestBody"),
    ],
)
def test_a_broken_operation_is_refused_at_its_place_or_skipped_on_request(
    tmp_path: Path, operation: Any, field: str
) -> None:
    path = document(tmp_path, {"/x": {"post": operation}, "/y": {"get": {}}}, components=LOOP)
    with pytest.raises(InputError) as caught:
        import_catalog(path, "openapi")
    assert caught.value.field == field
    catalog, report = import_catalog(path, "openapi", skip_bad=True)
    assert catalog.ids == ("shop.get_y",)
    assert report.skipped == {"not usable": 1}
    assert field in report.notes[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("swagger: '2.0'\npaths: {}", "expected an OpenAPI 3 document"),
        ("openapi: 3.0.0", "'paths': is missing"),
        ("openapi: 3.0.0\npaths: {}", "there is no tool"),
        ("openapi: 3.0.0\npaths: {/a: [1]}", "expected an object of operations"),
        ("openapi: 3.0.0\npaths: {}\npaths: {}", "line 3: key 'paths' is repeated"),
        ("- a\n- b", "expected an OpenAPI 3 document"),
        ("", "expected an OpenAPI 3 document"),
    ],
)
def test_what_is_no_openapi_document_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        import_catalog(path, "openapi")
