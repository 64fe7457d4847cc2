from __future__ import annotations

import contextlib
import datetime
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from ruamel.yaml import YAML

from hermes_ws.contract.errors import NotFound, ProfileUnusable
from hermes_ws.scope.config import ProfileConfig, load_config, parse_config, public_view
from hermes_ws.scope.sections import Section
from hermes_ws.scope.server_sections import McpServerConfig

FILE = Path("/h/config.yaml")


def parse(text: str) -> ProfileConfig:
    return parse_config(text.encode(), FILE)


def refusal(text: str) -> ProfileUnusable:
    with pytest.raises(ProfileUnusable) as refused:
        parse(text)
    assert refused.value.data["file"] == str(FILE)
    assert str(FILE) in refused.value.message
    return refused.value


def test_without_a_file_everything_is_at_its_default(tmp_path: Path) -> None:
    config = load_config(tmp_path / "config.yaml")
    assert config == ProfileConfig()
    assert (config.model.provider, config.agent.max_turns, config.approvals.mode) == ("loopback", 40, "ask")
    assert (config.limits.frame_bytes, config.limits.in_flight, config.limits.send_deadline_s) == (1_048_576, 64, 30)
    assert (config.profiles.idle_s, config.profiles.max_open, config.sessions.idle_s) == (900, 64, 300)
    assert (config.warden.idle_s, config.durability, config.terminal.deadline_s) == (120, "full", 120)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "model:\n", "model:\n  # provider: x\nterminal:\n"])
def test_an_empty_file_or_section_means_the_defaults(text: str) -> None:
    assert parse(text) == ProfileConfig()


def test_settings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "\ufeffmodel: {provider: mine, name: m, fallbacks: [{provider: loopback, name: loopback}]}\r\n"
        "providers: {mine: {kind: openai, base_url: 'http://127.0.0.1:1/v1', api_key: '${K}', headers: {X: x}}}\r\n"
        "approvals: {mode: deny, rules: [{tool: terminal, command: 'git *', decision: allow}]}\r\n"
        "terminal: {directories: [], confine: off, env: [K]}\r\n"
        "server: {hosts: [desk.example], origins: ['https://desk.example']}\r\n"
        "durability: normal\r\n",
        "utf-8",
    )
    config = load_config(path)
    assert config.providers["mine"].api_key == "${K}"
    assert config.approvals.rules[0].command == "git *"
    assert (config.terminal.directories, config.terminal.confine, config.terminal.env) == ((), "off", ("K",))
    assert config.server.origins == ("https://desk.example",)
    assert config.durability == "normal"


def test_sections_that_are_not_ours_are_left_alone_and_named() -> None:
    config = parse("toolsets: [a]\nplugins: {x: {command: y, env: [1, {}]}}\n3: x\nagent: {max_turns: 5}\n")
    assert config.foreign == ("3", "plugins", "toolsets")
    assert config.agent.max_turns == 5


def test_foreign_is_not_a_setting() -> None:
    assert parse("foreign: [x]\n").foreign == ("foreign",)


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("terminal: {directoriez: []}", "terminal.directoriez", "did you mean `directories`?"),
        ("terminal: {confine: requiredd}", "terminal.confine", "did you mean `required`?"),
        ("approvals: {mode: assk}", "approvals.mode", "did you mean `ask`?"),
        ("approvals: {rules: [{tool: x, decision: alloww}]}", "approvals.rules[0].decision", "did you mean `allow`?"),
        ("approvals: {rules: [{tool: x, decisionn: ask}]}", "approvals.rules[0].decisionn", "`decision`?"),
        ("approvals: {rules: [{tool: x}]}", "approvals.rules[0].decision", "is missing"),
        ("providers: {x: {kind: openai, base_ulr: a}}", "providers.x.base_ulr", "did you mean `base_url`?"),
        ("model: {fallbacks: [{provider: loopback, naem: x}]}", "model.fallbacks[0].naem", "did you mean `name`?"),
        ("zzz: 1\nagent: {qqqq: 1}", "agent.qqqq", "there is no such setting"),
        ("agent: 7", "agent", "must hold settings"),
        ("agent: [a]", "agent", "must hold settings"),
        ("providers: 7", "providers", "must hold settings"),
        ("agent: {max_turns: many}", "agent.max_turns", "valid integer"),
        ("agent: {max_turns: 0}", "agent.max_turns", "greater than or equal to 1"),
        ("agent: {default: 7}", "agent.default", "must be text"),
        ("terminal: {env: OPS}", "terminal.env", "must be a list"),
        ("terminal: {deadline_s: .inf}", "terminal.deadline_s", "finite"),
        ("terminal: {deadline_s: 0}", "terminal.deadline_s", "greater than 0"),
        ("durability: ful", "durability", "did you mean `full`?"),
        ("server: {origins: [desk.example]}", "server.origins[0]", "match pattern"),
        ("server: {hosts: ['http://x']}", "server.hosts[0]", "match pattern"),
        ("model: {provider: loopbak}", "", "did you mean `loopback`?"),
        ("model: {provider: mien}\nproviders: {mine: {kind: openai}}", "", "did you mean `mine`?"),
        ("providers: {mine: {base_url: x}}", "", "write `kind: openai`"),
    ],
)
def test_an_error_names_the_key_and_guesses_what_was_meant(text: str, key: str, says: str) -> None:
    refused = refusal(text)
    assert says in refused.message
    assert [problem["key"] for problem in refused.data["problems"]] == [key]  # type: ignore[index, union-attr]


def test_all_problems_are_counted_and_the_first_are_shown() -> None:
    refused = refusal("agent: {a1: 1, a2: 1, a3: 1, a4: 1, a5: 1, a6: 1, a7: 1}")
    assert len(refused.data["problems"]) == 7  # type: ignore[arg-type]
    assert "and 2 more" in refused.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1\nb: 2\n", "line 2"),
        ("a: 1\n  b: 2\n", "line 2"),
        ("model: {}\nmodel: {}\n", "duplicate key"),
        ("a: 1\n---\nb: 2\n", "document"),
        ("- a\n- b\n", "must hold sections"),
        ("just text", "must hold sections"),
        ("a: \x01", "cannot be read|not YAML|special characters"),
        ("x: !!python/object:os.system {}", "line 1"),
        ("? [a]\n: 1\n" * 2, "YAML|duplicate|line"),
        ("[" * 1000, "YAML"),
        ("a: &a [*a]\nb: *c", "line 2"),
    ],
)
def test_what_is_not_yaml_is_refused_with_the_line(text: str, says: str) -> None:
    with pytest.raises(ProfileUnusable, match=says):
        parse(text)


def test_a_file_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ProfileUnusable, match=r"not UTF-8 \(byte 3\)"):
        parse_config(b"a: \xff", FILE)


@pytest.mark.parametrize(
    "text",
    [
        "providers: {x: {kind: openai, api_key: [s3cret-value]}}",
        "providers: {x: {kind: openai, api_keys: s3cret-value}}",
        "providers: {x: {kind: openai, headers: {A: [s3cret-value]}}}",
        'providers: {x: {kind: openai, api_key: "s3cret-value}}',
        "providers:\n  x:\n    api_key: s3cret-value: y\n",
        "x: {a: s3cret-value, a: s3cret-value}",
        "x: *s3cret-value",
    ],
)
def test_an_error_does_not_repeat_what_may_be_secret(text: str) -> None:
    with pytest.raises(ProfileUnusable) as refused:
        parse(text)
    assert "s3cret" not in str(refused.value.to_wire())
    assert refused.value.__cause__ is None


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        ProfileConfig().agent.max_turns = 3  # type: ignore[misc]


def test_references_stay_as_they_are_written() -> None:
    """Case TERM-05: what is not declared to hold a secret is literal everywhere."""
    assert parse("terminal: {cwd: '${D}/w'}").terminal.cwd == "${D}/w"


def test_a_key_in_the_settings_is_not_printed() -> None:
    config = parse("providers: {x: {kind: openai, api_key: s3cret-value, headers: {A: s3cret-value}}}")
    assert "s3cret" not in repr(config)


VIEWED = parse(
    "model: {provider: x}\n"
    "providers:\n"
    "  x: {kind: openai, base_url: 'http://127.0.0.1:1/v1', api_key: '${K}',\n"
    "    headers: {A: 'Bearer ${K}', B: s3cRet-42}}\n"
    "  y: {kind: openai, base_url: 'https://u:s3cRet-42@h.example/', api_key: s3cRet-42}\n"
    "approvals: {rules: [{tool: x, decision: ask}]}\n"
)


def test_the_public_view_shows_references_and_hides_keys() -> None:
    view = public_view(VIEWED)
    assert "s3cRet" not in str(view)
    assert public_view(VIEWED, "providers.x") == {
        "kind": "openai",
        "base_url": "http://127.0.0.1:1/v1",
        "api_key": "${K}",
        "headers": {"A": "Bearer ${K}", "B": "«secret»"},
        "key_command": [],
        "key_env": [],
        "prices": {},
    }
    assert public_view(VIEWED, "providers.y.api_key") == "«secret»"
    assert public_view(VIEWED, "providers.y.base_url") == "«secret»"


def test_a_key_of_the_view_leads_to_its_value() -> None:
    assert public_view(VIEWED, "agent.max_turns") == 40
    assert public_view(VIEWED, "durability") == "full"
    assert public_view(VIEWED, "model.reasoning") is None
    assert public_view(VIEWED, "approvals.rules") == [
        {"tool": "x", "command": None, "argv": None, "path": None, "decision": "ask"}
    ]


@pytest.mark.parametrize(
    ("key", "says", "hint"),
    [
        ("agent.max_turn", "There is no setting agent.max_turn.", "Did you mean max_turns?"),
        ("agnet.x", "There is no setting agnet.", "Did you mean agent?"),
        ("durability.x", "There is no setting durability.x.", ""),
        ("model.", "There is no setting model..", ""),
        ("__class__", "There is no setting __class__.", ""),
    ],
)
def test_a_key_that_does_not_exist_is_not_found(key: str, says: str, hint: str) -> None:
    with pytest.raises(NotFound) as missing:
        public_view(VIEWED, key)
    assert (missing.value.message, missing.value.hint) == (says, hint)


def sections(model: type[Section]) -> list[type[Section]]:
    return [model, *(inner for each in model.__subclasses__() for inner in sections(each))]


def test_every_section_refuses_unknown_keys_and_changes() -> None:
    assert len(sections(Section)) > 12
    for section in sections(Section):
        # Tool servers are described by homes of other programs as well, which say more than is known here.
        shared = section is McpServerConfig
        assert section.model_config.get("extra") == ("ignore" if shared else "forbid")
        assert section.model_config.get("frozen") is True


@given(st.text(st.sampled_from("ab:-[]{}&*!?|>'\"#%@` \n\t,1.~/\\é\0"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ProfileUnusable):
        assert isinstance(parse(text), ProfileConfig)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates(), st.just("${K}")
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(st.sampled_from(sorted(ProfileConfig.model_fields)), VALUES)
def test_any_value_of_a_section_is_taken_or_refused(section: str, value: object) -> None:
    out = io.StringIO()
    YAML(typ="safe", pure=True).dump({section: value}, out)
    try:
        config = parse_config(out.getvalue().encode("utf-8", "replace"), FILE)
    except ProfileUnusable:
        return
    assert not isinstance(value, datetime.date) or section == "foreign"
    public_view(config)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("quick_commands: {x: {type: exec}}", "lacks what it does"),
        ("quick_commands: {x: {type: alias, command: ls}}", "lacks what it does"),
        ("secrets: {sources: [{kind: command}]}", "`command` is what a source of kind command runs"),
        ("secrets: {sources: [{kind: command, command: [vault, '${TOKEN}']}]}", "name the secret in `env`"),
        ("mcp_servers: {x: {}}", "either a `command` or a `url`"),
        ("mcp_servers: {x: {command: server, url: 'https://tools.example/mcp'}}", "either a `command` or a `url`"),
    ],
)
def test_what_does_not_go_together_says_so(text: str, told: str) -> None:
    assert told in refusal(text).message


def test_settings_know_whether_there_is_any_hook() -> None:
    assert not parse("").hooks
    assert parse("hooks: {tool_before: [{command: ./check}]}").hooks


def test_a_tool_server_that_is_switched_off_may_be_half_written() -> None:
    assert not parse("mcp_servers: {x: {enabled: false}}").mcp_servers["x"].enabled
