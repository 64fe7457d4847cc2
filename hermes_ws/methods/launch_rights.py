"""What a session may be made with, by the rights of whoever makes it."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_ws.contract.errors import PermissionDenied
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.registry import Right
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.current import in_thread


async def see_rights(call: ProfileCall, params: CreateParams) -> None:
    """Refuse options that take more than submitting. Raises PermissionDenied, which names option and right.

    To answer for the person before anything is asked needs the right to answer; to work outside of the profile's own
    directory, or without its rules, the right to control.
    """
    if params.yolo:
        _need(call, Right.ANSWER, "yolo")
    if params.accept_hooks:
        _need(call, Right.ANSWER, "accept_hooks")
    if params.ignore_rules:
        _need(call, Right.CONTROL, "ignore_rules")
    if params.cwd is not None and Right.CONTROL not in call.principal.rights:
        # With its links resolved: an agent may have put one into home/ that leads elsewhere.
        place = await in_thread(call.runtime.limiter, os.path.realpath, params.cwd)
        if not Path(place).is_relative_to(call.runtime.home.user):
            _need(call, Right.CONTROL, "a directory outside of the profile's own home/")


def _need(call: ProfileCall, right: Right, what: str) -> None:
    if right not in call.principal.rights:
        raise PermissionDenied(
            f"{call.principal.name} lacks the right {right.value}, which {what} needs.",
            hint="Leave it out, or ask whoever runs the server for a token with this right.",
            right=right.value,
        )
