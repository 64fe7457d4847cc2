"""What the documents promise, tried: what fits a schema is accepted, what does not is refused with its code, and no
input whatever makes the server say that something went wrong in it.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from hermes_ws.contract import openrpc, schemas
from hermes_ws.contract.catalog import METHODS, AnyMethod
from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.validation import read_params
from tests.e2e.process import Server, write_home
from tests.fuzz.strategies import ANY_JSON, fitting
from tests.transports.clients import WebSocketClient, websocket

BASE = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}

BUDGET = int(os.environ.get("FUZZ_EXAMPLES", "5"))
"""Examples of each kind and method: a look in every run, hours when somebody asks for them."""

TRY = settings(
    max_examples=BUDGET,
    deadline=None,
    derandomize=BUDGET < 100,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

ENDING = frozenset({"runtime.drain"})
"""What ends the server that is tried."""

SHAPES = schemas.shapes()
DEFINITIONS: Mapping[str, Any] = SHAPES.definitions

EVERY_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=lambda each: each.name)


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": dict(DEFINITIONS)})


def refusal(method: AnyMethod, params: Any) -> HermesError | None:
    """What the server says to these parameters."""
    try:
        read_params(method.params, params)
    except HermesError as refused:
        return refused
    return None


@EVERY_METHOD
def test_what_fits_the_schema_is_accepted_or_refused_with_a_reason(method: AnyMethod) -> None:
    @TRY
    @given(fitting(SHAPES.of(method.params), DEFINITIONS))
    def tried(params: Any) -> None:
        refused = refusal(method, params)
        # More is asked than a schema can say: that two things fit together, that a text is not blank.
        assert refused is None or (refused.code == 4000 and "path" in refused.data)

    tried()


@EVERY_METHOD
def test_what_the_server_takes_fits_the_schema(method: AnyMethod) -> None:
    known = validator(SHAPES.names[method.params])

    @TRY
    @given(st.dictionaries(st.sampled_from([*method.params.model_fields, "unheard_of"]), ANY_JSON, max_size=4))
    def tried(params: dict[str, Any]) -> None:
        refused = refusal(method, params)
        assert refused.code == 4000 if refused is not None else known.is_valid(params)

    tried()


@EVERY_METHOD
def test_every_result_that_can_be_made_fits_its_schema(method: AnyMethod) -> None:
    known = validator(SHAPES.names[method.result])

    @settings(TRY, max_examples=min(2, BUDGET))
    @given(fitting(SHAPES.of(method.result), DEFINITIONS))
    def tried(value: Any) -> None:
        try:
            made = method.result.model_validate(value)
        except ValidationError:
            return
        assert known.is_valid(json.loads(made.model_dump_json()))

    tried()


# --- against a server ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("fuzzed")
    for name in ("default", "second"):
        write_home(place / "homes" / name, env={}, config="")
    server = Server(place / "homes", place / "server.log", BASE)
    yield server
    assert server.stop() == 0
    incidents = [line for line in server.log.read_text().splitlines() if "incident" in line]
    assert not incidents, incidents[0][:3000]


@pytest.fixture
def client(server: Server) -> Iterator[WebSocketClient]:
    client = websocket(server.url, server.token)
    yield client
    client.close()


@pytest.mark.parametrize("method", [each for each in METHODS.values() if each.name not in ENDING], ids=lambda e: e.name)
def test_no_parameters_make_the_server_fail(client: WebSocketClient, method: AnyMethod) -> None:
    session = client.call("session.create", subscribe=False)["session_id"]
    names = list(method.params.model_fields)
    documented = {error.code for error in method.errors} | GENERAL
    likely = st.sampled_from([session, "main", "default", "1:0", "x", "", " ", 0, 1, -1, None, True, [], {}])

    @TRY
    @given(st.dictionaries(st.sampled_from([*names, "unheard_of"]), likely | ANY_JSON, max_size=len(names)))
    def tried(params: dict[str, Any]) -> None:
        if "session_id" in names:
            params.setdefault("session_id", session)
        frame = {"jsonrpc": "2.0", "id": 1, "method": method.name, "params": params}
        answer = client.raw(json.dumps(frame))
        if "error" in answer:
            assert answer["error"]["code"] in documented, answer

    tried()


GENERAL = {
    -32601, -32602, 4000, 4001, 4003, 4004, 4009, 4010, 4029, 4064, 4090, 4413, 4426, 5001, 5003, 5035,
}  # fmt: skip
"""Codes that any method may answer with; -32603, a bug of ours, is none of them."""


def test_no_text_makes_the_server_fail(client: WebSocketClient) -> None:
    keys = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"])
    values = st.sampled_from(["2.0", "profiles.list", "$/cancel", "gateway.ping", "srq-1", 1, {}, None]) | ANY_JSON
    envelopes = st.dictionaries(keys, values, min_size=1).map(lambda each: json.dumps(each))
    texts = envelopes | st.text(max_size=200) | ANY_JSON.map(json.dumps)
    sent = 0

    @settings(TRY, max_examples=40 * BUDGET)
    @given(texts)
    def tried(text: str) -> None:
        nonlocal sent
        try:
            text.encode()
        except UnicodeEncodeError:
            return
        client.send(text)
        sent += 1
        if sent % 20 == 0:
            _drained(client)

    tried()
    _drained(client)


def _drained(client: WebSocketClient) -> None:
    """Everything that was sent has been dealt with: a last request is answered."""
    mark = f"mark-{random.getrandbits(64)}"
    client.send(json.dumps({"jsonrpc": "2.0", "id": mark, "method": "profiles.list"}))
    while True:
        frame = client.receive()
        if "error" in frame:
            assert frame["error"]["code"] != -32603, frame
        if frame.get("id") == mark and "method" not in frame:
            assert "result" in frame
            return


def test_the_document_that_is_served_is_the_one_that_is_rendered(client: WebSocketClient) -> None:
    assert client.call("rpc.discover")["document"] == json.loads(json.dumps(openrpc.document()))
