"""Answering what the server asks."""

from __future__ import annotations

from hermes_ws.contract.methods.questions import QUESTION_ANSWER, Answered, AnswerParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall


@handles(QUESTION_ANSWER)
async def answer(call: ProfileCall, params: AnswerParams) -> Answered:
    """Settle the question, or tell what had settled it."""
    return await call.runtime.sessions.answer(params, call.principal.name)
