"""Which model a turn gets: from the scope it is given, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes_ws.agent.approvals import ApprovalPolicy
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.models.choose import choose, endpoint
from hermes_ws.agent.models.fallback import FallbackModel
from hermes_ws.agent.models.http_model import HttpModel
from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.request import settings_of
from hermes_ws.contract.errors import ModelFailed, ModelUnauthorised
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import ProfileScope, load_scope
from tests.agent.twins import request


def scope_of(tmp_path: Path, config: str = "", env: str = "") -> ProfileScope:
    home = ProfileHome(tmp_path.resolve())
    home.config.write_text(config)
    home.env.write_text(env)
    home.env.chmod(0o600)
    home.prepare()
    return load_scope(ProfileName("work"), home, launch_secrets=None, loaded=1, homes=())


MINE = """
model: {provider: mine, name: tiny}
providers:
  mine: {kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: "${MY_KEY}", headers: {X-Org: "${ORG}"}}
"""


def test_without_settings_it_is_the_loopback_model(tmp_path: Path) -> None:
    model = choose(scope_of(tmp_path), {})
    assert isinstance(model, LoopbackModel)
    assert (model.provider, model.name) == ("loopback", "loopback")


def test_a_provider_is_reached_with_what_its_own_profile_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCOPE-02, ENV-02: references are expanded from this profile's secrets, whatever the process environment has."""
    monkeypatch.setenv("MY_KEY", "another's")
    scope = scope_of(tmp_path, MINE, "MY_KEY=own-key-1234\nORG=acme\n")
    model = choose(scope, {})
    assert isinstance(model, HttpModel)
    reach = endpoint(scope, "mine", scope.config.providers["mine"])
    assert (reach.base_url, reach.api_key, dict(reach.headers)) == (
        "http://127.0.0.1:9/v1",
        "own-key-1234",
        {"X-Org": "acme"},
    )
    assert "own-key" not in repr(reach)


def test_a_key_that_is_missing_is_said_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ModelUnauthorised, match="MY_KEY") as raised:
        choose(scope_of(tmp_path, MINE, "ORG=acme\n"), {})
    assert "MY_KEY=…" in raised.value.hint


def test_openai_takes_its_key_by_its_usual_name(tmp_path: Path) -> None:
    config = "model: {provider: openai, name: big}\n"
    with pytest.raises(ModelUnauthorised) as raised:
        choose(scope_of(tmp_path, config), {})
    assert "OPENAI_API_KEY" in raised.value.hint
    assert isinstance(choose(scope_of(tmp_path, config, "OPENAI_API_KEY=sk-12345678\n"), {}), HttpModel)


def test_the_usual_key_is_not_sent_to_another_address(tmp_path: Path) -> None:
    config = 'model: {provider: openai, name: m}\nproviders: {openai: {base_url: "http://127.0.0.1:9/v1"}}\n'
    scope = scope_of(tmp_path, config, "OPENAI_API_KEY=sk-12345678\n")
    assert endpoint(scope, "openai", scope.config.providers["openai"]).api_key is None


def test_an_address_that_is_none_is_said(tmp_path: Path) -> None:
    config = 'model: {provider: openai, name: m}\nproviders: {openai: {base_url: "localhost:9"}}\n'
    with pytest.raises(ModelFailed, match="not an address"):
        choose(scope_of(tmp_path, config), {})


@pytest.mark.parametrize(
    ("launch", "agent", "name"),
    [
        ({}, AgentDefinition("a"), "tiny"),
        ({}, AgentDefinition("a", model="agents"), "agents"),
        ({"model": "launched"}, AgentDefinition("a", model="agents"), "launched"),
        ({"provider": "loopback", "model": "x"}, AgentDefinition("a"), "x"),
    ],
)
def test_the_session_decides_before_the_agent_and_the_agent_before_the_profile(
    tmp_path: Path, launch: Mapping[str, Any], agent: AgentDefinition, name: str
) -> None:
    scope = scope_of(tmp_path, MINE, "MY_KEY=own-key-1234\nORG=acme\n")
    model = choose(scope, launch, agent)
    assert model.name == name
    assert model.provider == launch.get("provider", "mine")


def test_a_provider_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelFailed, match="Did you mean loopback"):
        choose(scope_of(tmp_path), {"provider": "loopbak", "model": "x"})
    with pytest.raises(ModelFailed, match="without a model"):
        choose(scope_of(tmp_path), {"provider": "openai"})


def test_fallbacks_stand_in_their_order_unless_a_model_was_asked_for(tmp_path: Path) -> None:
    config = MINE.replace("name: tiny", "name: tiny, fallbacks: [{provider: loopback, name: spare}]")
    scope = scope_of(tmp_path, config, "MY_KEY=own-key-1234\nORG=acme\n")
    assert isinstance(choose(scope, {}), FallbackModel)
    assert isinstance(choose(scope, {"model": "other"}), HttpModel)


def test_the_settings_of_a_turn_come_from_the_scope(tmp_path: Path) -> None:
    config = (
        "approvals: {mode: deny, rules: [{tool: terminal, command: ls, decision: ask}]}\nterminal: {deadline_s: 7}\n"
    )
    scope = scope_of(tmp_path, config)
    scope.home.soul.write_text("Be kind.\n")
    settings = settings_of(scope, confined=True)
    assert settings.policy == ApprovalPolicy("deny", scope.config.approvals.rules, confined=True)
    assert (settings.soul, settings.deadline_s, settings.toolsets) == ("Be kind.", 7, scope.config.agent.toolsets)
    assert settings.redaction is scope.secrets


def test_toolsets_come_from_the_session_the_agent_or_the_profile() -> None:
    asked = request("x", toolsets=("ask",))
    assert asked.toolsets == ("ask",)
    asked = request("x", definition=AgentDefinition("a", toolsets=("files",)))
    assert asked.toolsets == ("files",)
    assert replace(asked, launch={"toolsets": ["terminal", 5]}).toolsets == ("terminal",)
