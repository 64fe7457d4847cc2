"""Answering what the server asks, and looking at what waits for an answer."""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.methods.questions import (
    APPROVAL_RESPOND,
    CLARIFY_RESPOND,
    CONNECTION_RESPOND,
    CONNECTORS_OPERATION_STATUS,
    QUESTION_ANSWER,
    QUESTION_LIST,
    SECRET_RESPOND,
    SUDO_RESPOND,
    Answered,
    AnswerParams,
    ApprovalRespondParams,
    ClarifyRespondParams,
    ConnectionRespondParams,
    ListQuestionsParams,
    Operation,
    OperationParams,
    QuestionList,
    QuestionRow,
    Responding,
    ValueRespondParams,
)
from hermes_ws.contract.questions import APPROVAL, CLARIFY, CONNECTION, SECRET, SUDO
from hermes_ws.contract.registry import Question
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall, ServerCall
from hermes_ws.scope.current import Bound, bind


@handles(QUESTION_ANSWER)
async def answer(call: ProfileCall, params: AnswerParams) -> Answered:
    """Settle the question, or tell what had settled it."""
    return await call.runtime.sessions.answer(params, call.principal.name)


@handles(QUESTION_LIST)
async def list_questions(call: ServerCall, params: ListQuestionsParams) -> QuestionList:
    """Those of one profile; or of all that are open and that the caller may see: one that is closed asks nothing."""
    if params.profile != "*":
        runtimes = [await call.open(params.profile)]
    else:
        runtimes = [each for each in call.host.open_runtimes() if call.may_address(each.name.text)]
    found: list[QuestionRow] = []
    for runtime in runtimes:
        try:
            found += await _of(call, runtime)
        except HermesError:
            if params.profile != "*":
                raise
    return QuestionList(questions=sorted(found, key=lambda row: row.asked_at))


@handles(APPROVAL_RESPOND)
async def respond_to_approval(call: ProfileCall, params: ApprovalRespondParams) -> Answered:
    """As `question.answer`, for an approval."""
    return await _respond(call, params, APPROVAL)


@handles(CLARIFY_RESPOND)
async def respond_to_clarification(call: ProfileCall, params: ClarifyRespondParams) -> Answered:
    """As `question.answer`, for a clarification."""
    return await _respond(call, params, CLARIFY)


@handles(SUDO_RESPOND)
async def respond_to_sudo(call: ProfileCall, params: ValueRespondParams) -> Answered:
    """As `question.answer`, for a password of the machine."""
    return await _respond(call, params, SUDO)


@handles(SECRET_RESPOND)
async def respond_to_secret(call: ProfileCall, params: ValueRespondParams) -> Answered:
    """As `question.answer`, for a secret."""
    return await _respond(call, params, SECRET)


@handles(CONNECTION_RESPOND)
async def respond_to_connection(call: ProfileCall, params: ConnectionRespondParams) -> Answered:
    """As `question.answer`, for a connection; its operation has the id of its question."""
    result = cast("dict[str, JsonValue]", params.result.model_dump(mode="json"))
    return await call.runtime.sessions.answer(
        AnswerParams(id=params.op_id, result=result), call.principal.name, kind=CONNECTION
    )


@handles(CONNECTORS_OPERATION_STATUS)
async def status(call: ProfileCall, params: OperationParams) -> Operation:
    """What was asked for, and whether that is decided."""
    return await call.runtime.sessions.questions.operation(params.op_id)


async def _of(call: ServerCall, runtime: ProfileRuntime) -> list[QuestionRow]:
    with bind(Bound(runtime.scope, call.attachment.id, None, None)):
        asked = await runtime.sessions.open_questions()
    profile = runtime.name.text
    return [QuestionRow.model_validate({**each.model_dump(), "profile": profile}) for each in asked]


async def _respond(call: ProfileCall, params: Responding, kind: Question) -> Answered:
    """The same answer by another name: its own fields are the result."""
    result = cast("dict[str, JsonValue]", params.model_dump(mode="json", exclude=set(Responding.model_fields)))
    same = AnswerParams(id=params.id, result=result, execution_generation=params.execution_generation)
    return await call.runtime.sessions.answer(same, call.principal.name, kind=kind)
