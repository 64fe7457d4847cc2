"""What a profile's agents remember between sessions."""

from __future__ import annotations

from hermes_ws.agent import memory
from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.methods.memory import MEMORY_GET, MEMORY_SET, Memories, SetMemoryParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.home import ProfileHome


@handles(MEMORY_GET)
async def get(call: ProfileCall, params: OfProfile) -> Memories:
    """Both files."""
    return await in_thread(call.runtime.limiter, _read, call.runtime.home)


@handles(MEMORY_SET)
async def set_memory(call: ProfileCall, params: SetMemoryParams) -> Memories:
    """Replace one of them."""
    await in_thread(call.runtime.limiter, memory.write, call.runtime.home, params.target, params.text)
    return await in_thread(call.runtime.limiter, _read, call.runtime.home)


def _read(home: ProfileHome) -> Memories:
    return Memories(memory=memory.read(home, "memory"), user=memory.read(home, "user"), limit=memory.CHARACTERS)
