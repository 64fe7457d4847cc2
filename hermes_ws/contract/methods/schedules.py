"""Prompts that are submitted at their time."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from hermes_ws.contract.errors import InvalidParams, LimitReached, NotFound, SessionUnknown, StorageUnavailable
from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.methods.prompts import PROMPT_CHARACTERS
from hermes_ws.contract.model import Identifier, Result, Title
from hermes_ws.contract.registry import Order, Right, Scope, method

SHORTEST_S = 60
"""Seconds between two runs: more often would be a loop, not a schedule."""

LONGEST_S = 31_536_000
"""Seconds of a year."""


class CreateScheduleParams(OfProfile):
    """A prompt and a time: a cron expression (five fields, in `timezone`), every so many seconds, or once `at` seconds
    since 1970. Without a session each run gets a new one. `missed` says what becomes of runs while the profile could
    not run: once, however many they were, or none."""

    prompt: str = Field(min_length=1, max_length=PROMPT_CHARACTERS)
    title: Title | None = None
    cron: str | None = Field(default=None, min_length=9, max_length=200)
    every_s: int | None = Field(default=None, ge=SHORTEST_S, le=LONGEST_S)
    at: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    timezone: str = Field(default="UTC", min_length=1, max_length=100)
    session_id: Identifier | None = None
    agent: Identifier | None = None
    missed: Literal["run_once", "skip"] = "run_once"

    def located_by(self) -> str | None:
        return self.session_id

    @model_validator(mode="after")
    def _one_time(self) -> CreateScheduleParams:
        if sum(each is not None for each in (self.cron, self.every_s, self.at)) != 1:
            raise ValueError("give exactly one of cron, every_s or at")
        if self.session_id is not None and self.agent is not None:
            raise ValueError("a session has its agent; name one of the two")
        return self


class ScheduleRow(Result):
    """One schedule. `next_at` is null while it is paused or has nothing more to do; times are since 1970."""

    schedule_id: str
    title: str | None
    prompt: str
    cron: str | None
    every_s: int | None
    at: float | None
    timezone: str
    session_id: str | None
    agent: str | None
    missed: Literal["run_once", "skip"]
    state: Literal["active", "paused", "done"]
    next_at: float | None
    last_at: float | None
    last_session_id: str | None
    last_problem: str
    runs: int
    created_at: float


class ScheduleList(Result):
    """All schedules of the profile, oldest first."""

    schedules: list[ScheduleRow]


class ScheduleParams(OfProfile):
    """A schedule of the profile."""

    schedule_id: Identifier


class ScheduleDeleted(Result):
    """Whether there was one."""

    deleted: bool


_ERRORS = (NotFound, StorageUnavailable)

SCHEDULE_CREATE = method(
    "schedule.create",
    CreateScheduleParams,
    ScheduleRow,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=(InvalidParams, SessionUnknown, NotFound, LimitReached, StorageUnavailable),
    doc="Have a prompt submitted at its time, in this profile, unattended. It survives restarts.",
)

SCHEDULE_LIST = method(
    "schedule.list",
    OfProfile,
    ScheduleList,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The schedules of the profile.",
)

SCHEDULE_PAUSE = method(
    "schedule.pause",
    ScheduleParams,
    ScheduleRow,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=_ERRORS,
    doc="Stop a schedule until it is resumed.",
)

SCHEDULE_RESUME = method(
    "schedule.resume",
    ScheduleParams,
    ScheduleRow,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=_ERRORS,
    doc="Let a paused schedule go on, from its next time on.",
)

SCHEDULE_RUN = method(
    "schedule.run",
    ScheduleParams,
    ScheduleRow,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=(NotFound, SessionUnknown, StorageUnavailable),
    doc="Run a schedule now, besides its times.",
)

SCHEDULE_DELETE = method(
    "schedule.delete",
    ScheduleParams,
    ScheduleDeleted,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=(StorageUnavailable,),
    doc="Remove a schedule. What it has started goes on.",
)
