"""The documents that are made from the declarations: valid, complete, and with one name for one shape."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from hermes_ws.contract import asyncapi, openrpc, schemas, typescript
from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.close_codes import CLOSE_CODES
from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.contract.events import EVENTS
from hermes_ws.contract.general import general
from hermes_ws.contract.methods.mutations import PAYLOADS
from hermes_ws.contract.questions import QUESTIONS
from hermes_ws.contract.registry import Scope
from hermes_ws.server import door, life

DOCUMENTS = (openrpc.document, asyncapi.document, schemas.document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_same_declarations_give_the_same_document(document: Any) -> None:
    assert json.dumps(document()) == json.dumps(document())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_reference_leads_somewhere(document: Any) -> None:
    made = document()
    for reference in _references(made):
        place: Any = made
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_every_shape_is_a_json_schema() -> None:
    made = schemas.document()
    Draft202012Validator.check_schema({"$schema": made["$schema"], "$defs": made["$defs"]})
    assert set(made["methods"]) == set(METHODS)  # type: ignore[arg-type]
    assert set(made["events"]) == set(EVENTS)  # type: ignore[arg-type]
    assert set(made["questions"]) == set(QUESTIONS)  # type: ignore[arg-type]


@pytest.mark.parametrize("document", [openrpc.document, schemas.document])
def test_what_an_edit_takes_is_told_for_each_operation(document: Any) -> None:
    made = document()
    fields = (made.get("$defs") or made["components"]["schemas"])["MutateParams"]["properties"]
    assert fields["operation"]["enum"] == list(PAYLOADS)
    told = fields["payload"]["x-by"]["operation"]
    assert {each: reference["$ref"].rsplit("/", 1)[-1] for each, reference in told.items()} == {
        each: shape.__name__ for each, shape in PAYLOADS.items()
    }
    assert fields["payload"]["anyOf"] == list(told.values())


def test_two_shapes_never_share_a_name() -> None:
    doubled = [name for name in schemas.shapes().definitions if "__" in name]
    assert not doubled, f"{doubled}: give one of the models another name, so that clients in any language can say it"


def test_openrpc_has_every_method_with_what_it_needs() -> None:
    made = {each["name"]: each for each in openrpc.document()["methods"]}  # type: ignore[union-attr,index]
    assert set(made) == set(METHODS)
    submit: Any = made["prompt.submit"]
    assert submit["x-right"] == "submit"
    create = {each["name"]: each for each in cast("Any", made["session.create"])["params"]}
    assert create["yolo"]["x-needs"] == [{"right": "answer", "for": "yolo"}]
    assert create["cwd"]["schema"]["x-needs"] == create["cwd"]["x-needs"]
    assert "x-needs" not in create["title"]
    (scope,) = (each["x-needs"] for each in cast("Any", made["config.set"])["params"] if each["name"] == "scope")
    assert scope == [{"right": "control", "for": "a session's own setting", "instead": True}]
    assert submit["paramStructure"] == "by-name"
    assert {each["name"] for each in submit["params"] if each["required"]} == {"session_id", "input_id"}
    assert {"code": 5035, "type": "draining"} in [
        {"code": each["code"], "type": each["data"]["type"]} for each in submit["errors"]
    ]


def test_openrpc_tells_what_any_method_may_answer() -> None:
    told = openrpc.document()["x-general-errors"]
    assert isinstance(told, dict)
    for scope in Scope:
        types = [row["data"]["type"] for key in ("always", scope.value) for row in cast("list[Any]", told[key])]
        assert types == [each.type for each in general(scope)]
    assert {"invalid_params", "overloaded", "internal"} <= {each.type for each in general(Scope.CONNECTION)}
    assert issubclass(ThreadUnknown, general(Scope.THREAD))
    assert not issubclass(ThreadUnknown, general(Scope.SESSION))


def test_asyncapi_has_every_event_and_both_sides_of_every_question() -> None:
    made: Any = asyncapi.document()
    assert made["asyncapi"].startswith("3.")
    named = {each["name"] for each in made["components"]["messages"].values()}
    assert named == {*EVENTS, *QUESTIONS, *(f"{kind} (answer)" for kind in QUESTIONS)}
    asked = [each for name, each in made["operations"].items() if name.startswith("ask")]
    assert len(asked) == len(QUESTIONS)
    assert all(each["reply"]["messages"] for each in asked)


def test_a_frame_of_the_server_fits_its_schema() -> None:
    made: Any = asyncapi.document()
    message = made["components"]["messages"]["event_notice"]["payload"]
    validator = Draft202012Validator({**message, "components": made["components"]})
    params = {"type": "notice", "ts": 1.0, "payload": {"level": "info", "type": "x", "message": "y"}}
    validator.validate({"jsonrpc": "2.0", "method": "event", "params": params})
    assert not validator.is_valid({"jsonrpc": "2.0", "method": "event", "params": {**params, "type": "other"}})


def test_the_digest_is_of_the_contract_and_not_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    before = openrpc.digest()
    monkeypatch.setattr(openrpc, "__version__", "99.0")
    assert openrpc.digest() == before
    monkeypatch.setattr(openrpc, "PROTOCOL_MINOR", 99)
    assert openrpc.digest() != before


def test_typescript_has_the_three_maps() -> None:
    text = typescript.source()
    for name, keys in (
        ("RpcMethods", METHODS),
        ("ServerRequestMap", QUESTIONS),
        ("BackendGatewayEventMap", EVENTS),
    ):
        body = text.split(f"export interface {name} {{", 1)[1].split("\n}", 1)[0]
        assert all(f"  {json.dumps(key)}: " in body for key in keys)


def test_typescript_says_what_the_schema_says() -> None:
    text = typescript.source()
    assert "  session_id: string;" in text
    assert '  mode?: "queue"' in text
    assert 'choices: Array<"once" | "session" | "always" | "deny">;' in text
    assert "Record<string, JsonValue>" in text
    assert (
        "unknown"
        not in text.replace('"unknown"', "")
        .replace("unknown_", "")
        .replace("_unknown", "")
        .lower()
        .split("export interface rpcmethods")[1]
    )


@pytest.mark.parametrize(
    ("schema", "type"),
    [
        ({"type": ["string", "null"]}, "string | null"),
        ({"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}, "A & B"),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "[number, string]"),
        ({"type": "array"}, "Array<JsonValue>"),
        ({"type": "object"}, "Record<string, JsonValue>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
        ({"type": "object", "properties": {"a-b": {"type": "boolean"}}}, '{\n  "a-b"?: boolean;\n}'),
        ({"type": "object", "properties": {}}, "{}"),
        ({"oneOf": [{"const": 1}, {"const": 1}]}, "1"),
        ({}, "JsonValue"),
    ],
)
def test_each_form_of_a_schema_has_its_type(schema: dict[str, Any], type: str) -> None:
    assert typescript._type(schema, "") == type  # pyright: ignore[reportPrivateUsage]


def test_a_definition_that_is_no_object_is_a_type_of_its_own() -> None:
    properties = {"b": {"type": "integer", "description": "How many.\n\nAt most ten."}}
    found = schemas.Shapes({"A": {"enum": ["x", "y"]}, "B": {"type": "object", "properties": properties}}, {}, "")
    text = "\n".join(typescript._definitions(found))  # pyright: ignore[reportPrivateUsage]
    assert 'export type A = "x" | "y";' in text
    assert "export interface B {\n  /** How many. */\n  b?: number;\n}" in text


def test_every_close_code_of_the_server_is_documented() -> None:
    known = {each.code for each in CLOSE_CODES}
    used = {
        value
        for module in (life, door)
        for name, value in inspect.getmembers(module)
        if name.isupper() and isinstance(value, int) and 4400 <= value < 4600
    }
    assert used
    assert used <= known
    assert len(known) == len(CLOSE_CODES)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)
