"""Prompts that are submitted at their time."""

from __future__ import annotations

from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.methods.schedules import (
    SCHEDULE_CREATE,
    SCHEDULE_DELETE,
    SCHEDULE_LIST,
    SCHEDULE_PAUSE,
    SCHEDULE_RESUME,
    SCHEDULE_RUN,
    CreateScheduleParams,
    ScheduleDeleted,
    ScheduleList,
    ScheduleParams,
    ScheduleRow,
)
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall


@handles(SCHEDULE_CREATE)
async def create(call: ProfileCall, params: CreateScheduleParams) -> ScheduleRow:
    """Make it, with its first time."""
    return await call.runtime.schedules.create(params)


@handles(SCHEDULE_LIST)
async def list_schedules(call: ProfileCall, params: OfProfile) -> ScheduleList:
    """With what became of their last runs."""
    return ScheduleList(schedules=await call.runtime.schedules.list())


@handles(SCHEDULE_PAUSE)
async def pause(call: ProfileCall, params: ScheduleParams) -> ScheduleRow:
    """Stop it."""
    return await call.runtime.schedules.pause(params.schedule_id)


@handles(SCHEDULE_RESUME)
async def resume(call: ProfileCall, params: ScheduleParams) -> ScheduleRow:
    """Let it go on."""
    return await call.runtime.schedules.resume(params.schedule_id)


@handles(SCHEDULE_RUN)
async def run(call: ProfileCall, params: ScheduleParams) -> ScheduleRow:
    """Submit its prompt now."""
    return await call.runtime.schedules.run(params.schedule_id)


@handles(SCHEDULE_DELETE)
async def delete(call: ProfileCall, params: ScheduleParams) -> ScheduleDeleted:
    """Remove it."""
    return ScheduleDeleted(deleted=await call.runtime.schedules.delete(params.schedule_id))
