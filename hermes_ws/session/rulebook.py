"""Writing down what a person allowed for good: into the configuration of the profile that asked, and no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, final

from pydantic import JsonValue

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.scope.config_edit import add_rules
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import RuleConfig
from hermes_ws.session.ports import Runtime


@final
class ProfileRules:
    """The `RuleBook` of one execution."""

    def __init__(self, runtime: Runtime, scope: ProfileScope) -> None:
        self._runtime = runtime
        self._scope = scope

    async def add(self, rules: Sequence[RuleConfig], before: RuleConfig | None) -> None:
        """Write rules before this one, else at the end. The next execution loads them.

        Raises `ProfileUnusable`, `InvalidParams`, `StorageUnavailable`; then nothing was written.
        """
        await in_thread(self._runtime.limiter, _add, self._scope.home.config, rules, before)


def _add(path: Path, rules: Sequence[RuleConfig], before: RuleConfig | None) -> None:
    try:
        add_rules(path, [_plain(rule) for rule in rules], None if before is None else _plain(before))
    except OSError as error:
        raise StorageUnavailable(f"config.yaml cannot be written: {error.strerror}.") from None


def _plain(rule: RuleConfig) -> Mapping[str, JsonValue]:
    return cast("dict[str, JsonValue]", rule.model_dump(mode="json", exclude_none=True))
