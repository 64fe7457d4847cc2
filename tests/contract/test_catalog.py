"""The declarations themselves: complete, coherent, and the same for every reader."""

from __future__ import annotations

import inspect
import json
import pkgutil

import pytest

from hermes_ws.contract import errors, methods, openrpc
from hermes_ws.contract.catalog import METHODS, AnyMethod
from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.events import CATALOG, EVENTS
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import QUESTIONS
from hermes_ws.contract.registry import Order, Scope

EVERY_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=lambda each: each.name)


def test_no_module_of_declarations_is_left_out() -> None:
    assert [each.name for each in pkgutil.iter_modules(methods.__path__)] == list(methods.TOPICS)


@EVERY_METHOD
def test_a_method_says_what_it_is_for(method: AnyMethod) -> None:
    assert method.doc.endswith(".")
    assert issubclass(method.params, Params)
    assert issubclass(method.result, Result)


@EVERY_METHOD
def test_a_method_that_is_ordered_by_something_names_it(method: AnyMethod) -> None:
    fields = method.params.model_fields
    if method.order is Order.THREAD:
        assert {"session_id", "thread_id"} <= fields.keys()
    if method.scope in {Scope.SESSION, Scope.THREAD}:
        assert fields["session_id"].is_required()


def test_no_two_events_have_one_type() -> None:
    assert len(EVENTS) == len(CATALOG)


def test_the_live_events_are_those_that_come_again_whole() -> None:
    live = {each.type for each in CATALOG if each.live}
    texts = {
        "message.delta",
        "reasoning.delta",
        "tool.progress",
        "terminal.output",
        "process.output",
        "subagent.progress",
    }
    assert live == {
        *texts,
        "terminal.exited",
        "terminal.resized",
        "process.ended",
        "connection.update",
        "tool.generating",
    }


def test_the_document_names_every_method_event_and_question() -> None:
    document = json.loads(json.dumps(openrpc.document()))
    assert [each["name"] for each in document["methods"]] == sorted(METHODS)
    assert {each["type"] for each in document["x-events"]} == EVENTS.keys()
    assert {each["kind"] for each in document["x-questions"]} == QUESTIONS.keys()


def test_every_reference_of_the_document_leads_somewhere() -> None:
    text = json.dumps(openrpc.document())
    schemas = json.loads(text)["components"]["schemas"]
    references = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert references <= schemas.keys()
    assert references


def test_the_digest_is_the_same_for_the_same_contract() -> None:
    assert openrpc.digest() == openrpc.digest()
    assert len(openrpc.digest()) == 16


def _leaves() -> list[type[HermesError]]:
    found = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, HermesError)]
    return [each for each in found if each is not HermesError]


@pytest.mark.parametrize("error", _leaves(), ids=lambda each: each.__name__)
def test_an_error_goes_out_with_code_type_and_a_sentence(error: type[HermesError]) -> None:
    sent = error("The thing went wrong.", detail=1).to_wire()
    assert sent["code"] == error.code
    assert sent["message"] == "The thing went wrong."
    assert isinstance(sent["data"], dict)
    assert sent["data"]["type"] == error.type
    assert sent["data"]["detail"] == 1
    assert ("hint" in sent["data"]) == bool(error.hint)


def test_no_two_errors_share_a_type() -> None:
    types = [each.type for each in _leaves()]
    assert len(types) == len(set(types))


def test_a_hint_given_with_the_error_replaces_the_general_one() -> None:
    sent = errors.ProfileUnknown("No.", hint="Ask for another.").to_wire()
    assert isinstance(sent["data"], dict)
    assert sent["data"]["hint"] == "Ask for another."
