"""The sections of `config.yaml` on servers of tools; see `sections.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, final

from pydantic import ConfigDict, Field, model_validator

from hermes_ws.scope.sections import Name, Seconds, Section, Variable

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


@final
class McpToolsConfig(Section):
    """A choice of tools."""

    include: tuple[Name, ...] | None = None
    """Only these tools of the server are used; absent means all."""
    exclude: tuple[Name, ...] = ()
    """These are not."""


@final
class McpServerConfig(Section):
    """A server of tools that speaks the Model Context Protocol: a program, or an address. Homes that other programs use
    as well may say more here than is known to us; it is passed over.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)

    command: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """The program, run in the profile's confined child; it speaks over its input and output."""
    args: tuple[Annotated[str, Field(max_length=16_384)], ...] = ()
    """What the program is started with."""
    env: Mapping[Variable, str] = Field(default={}, repr=False, json_schema_extra={"secret": True})
    """What it finds in its environment, for example `TOKEN: ${MY_TOKEN}`. It finds no other secrets there."""
    url: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        default=None, repr=False, json_schema_extra={"secret": True}
    )
    """The address, for one that speaks streamable HTTP."""
    headers: Mapping[str, str] = Field(default={}, repr=False, json_schema_extra={"secret": True})
    """Further headers of each request, for example `Authorization: Bearer ${MY_TOKEN}`."""
    enabled: bool = True
    """Whether it is used."""
    timeout: Seconds = 120
    """Until a call is given up."""
    connect_timeout: Seconds = 30
    """Until it is ready; a turn waits that long for a server that is starting."""
    tools: McpToolsConfig = McpToolsConfig()
    """Which of its tools are used."""

    @model_validator(mode="after")
    def _has_one_way(self) -> McpServerConfig:
        if self.enabled and (self.command is None) == (self.url is None):
            raise ValueError("a tool server has either a `command` or a `url`")
        return self
