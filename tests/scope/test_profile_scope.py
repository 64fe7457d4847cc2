from __future__ import annotations

import dataclasses
import os
import pickle
import shutil
from collections.abc import Callable

import pytest

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import ProfileScope, fingerprint, load_scope

Load = Callable[..., ProfileScope]
MakeHome = Callable[..., ProfileHome]


def test_a_scope_is_loaded_whole(make_home: MakeHome, load: Load) -> None:
    """Case SCOPE-03: home, secrets, policy and settings are of one profile."""
    home = make_home("b", env="K=value-of-K-1\nbad line\n", config="terminal: {network: deny}\nagent: {max_turns: 3}\n")
    scope = load(home, loaded=7)
    assert (scope.profile.text, scope.home, scope.loaded) == ("b", home, 7)
    assert scope.secrets.reveal("K") == "value-of-K-1"
    assert (scope.terminal.network, scope.config.agent.max_turns) == ("deny", 3)
    assert [problem.line for problem in scope.problems] == [2]


def test_each_profile_has_its_own_value_of_a_shared_name(a: ProfileScope, b: ProfileScope) -> None:
    """Cases SCOPE-02, ENV-02, ENV-10."""
    assert a.secrets.reveal("SHARED") != b.secrets.reveal("SHARED")
    assert b.secrets.get("ONLY_A") is None
    with pytest.raises(ProfileUnusable, match="ONLY_A"):
        b.secrets.expand("${ONLY_A}", where="providers.x.api_key")


def test_a_scope_can_be_neither_changed_nor_printed_with_its_secrets(b: ProfileScope) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        b.loaded = 2  # type: ignore[misc]
    assert "only-in-B" not in repr(b)
    for spread in (pickle.dumps, dataclasses.asdict):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            spread(b)


def test_the_file_of_secrets_comes_before_what_the_server_was_started_with(make_home: MakeHome, load: Load) -> None:
    """Case ENV-05: launch secrets are the launch profile's, below its own file."""
    scope = load(make_home("x", env="K=from-file\n"), launch_secrets={"K": "from-start", "L": "from-start"})
    assert (scope.secrets.reveal("K"), scope.secrets.reveal("L")) == ("from-file", "from-start")
    assert load(make_home("y")).secrets.names() == frozenset()


def test_an_identity_is_minted_once(make_home: MakeHome, load: Load) -> None:
    home = make_home("x")
    assert load(home).identity == load(home, loaded=2).identity


def test_a_key_written_into_the_settings_is_redacted(make_home: MakeHome, load: Load) -> None:
    config = (
        "providers:\n  x: {kind: openai, api_key: s3cRet-42-xyz, base_url: '${URL}',"
        " headers: {A: s3cRet-43-xyz, B: plain}}\n"
        "secrets: {plain: [SITE]}\n"
    )
    scope = load(make_home("x", config=config, env="URL=https://u:s3cRet-44@h.example\nSITE=Not-A-Secret-1\n"))
    text = scope.secrets.redact("s3cRet-42-xyz s3cRet-43-xyz https://u:s3cRet-44@h.example Not-A-Secret-1 plain")
    assert text == ("«secret:providers.x.api_key» «secret:providers.x.headers.A» «secret:URL» Not-A-Secret-1 plain")


@pytest.mark.parametrize("spoil", ["config", "env", "policy", "identity"])
def test_a_scope_that_cannot_be_loaded_whole_is_not_loaded(make_home: MakeHome, load: Load, spoil: str) -> None:
    """Case PARSE-10: nothing of a failed load is kept, and a mended file loads what it says now."""
    home = make_home("x", env="K=1\n", config="agent: {max_turns: 2}\n")
    load(home)
    match spoil:
        case "config":
            home.config.write_text("agent: {max_tuns: 3}\n")
        case "env":
            home.env.chmod(0o644)
        case "policy":
            home.config.write_text("terminal: {read: [/]}\n")
        case _:
            home.identity.write_text("{")
    with pytest.raises(ProfileUnusable):
        load(home, loaded=2)


def test_a_change_on_disk_is_seen_at_the_next_load(make_home: MakeHome, load: Load) -> None:
    """Cases PARSE-11, ENV-14: the file decides, and an older scope stays what it was."""
    home = make_home("x", env="K=one\n")
    first = load(home)
    home.env.write_text("K=two\n")
    assert load(home, loaded=2).secrets.reveal("K") == "two"
    assert first.secrets.reveal("K") == "one"


def test_a_replaced_file_of_equal_size_and_time_is_another_one(make_home: MakeHome) -> None:
    """Case PARSE-09."""
    home = make_home("x", env="K=one\n")
    before, times = fingerprint(home), home.env.stat()
    beside = home.env.with_name("beside")
    beside.write_text("K=two\n")
    os.utime(beside, ns=(times.st_atime_ns, times.st_mtime_ns))
    beside.rename(home.env)
    assert home.env.stat().st_mtime_ns == times.st_mtime_ns
    assert home.env.stat().st_size == times.st_size
    assert fingerprint(home) != before


def test_a_fingerprint_stays_while_nothing_changes_and_tells_a_missing_file(make_home: MakeHome) -> None:
    home = make_home("x", env="K=1\n")
    assert fingerprint(home) == fingerprint(home)
    assert fingerprint(home)[0] is None
    home.config.write_text("")
    assert fingerprint(home)[0] is not None
    home.env.unlink()
    assert fingerprint(home)[1] is None


def test_loading_writes_nothing_but_the_identity(make_home: MakeHome, load: Load, root: HomesRoot) -> None:
    home, other = make_home("x", env="K=1\n"), make_home("y")
    before = sorted(root.path.rglob("*"))
    environment = dict(os.environ)
    load(home)
    assert sorted(set(root.path.rglob("*")) - set(before)) == [home.identity]
    assert dict(os.environ) == environment
    assert not other.identity.exists()


def test_the_same_home_below_another_root_is_the_same_profile(make_home: MakeHome, load: Load, root: HomesRoot) -> None:
    """Case CTX-09: what is bound comes from the home that was asked for, not from something shared."""
    home = make_home("x", env="K=1\n")
    scope = load_scope(ProfileName("alias"), home, launch_secrets=None, loaded=1, homes=root.homes_paths())
    assert scope.identity.name == "alias"
    assert load(home).identity == scope.identity


def test_what_the_sources_gave_fills_in_a_scope(b: ProfileScope) -> None:
    filled = b.with_sources({"SHARED": "from-a-source-1", "GIVEN": "from-a-source-2"})
    assert filled.secrets.reveal("GIVEN") == "from-a-source-2"
    assert filled.secrets.reveal("SHARED") == b.secrets.reveal("SHARED")
    assert (filled.home, filled.loaded) == (b.home, b.loaded)


def test_a_home_that_is_gone_is_not_made_again(make_home: MakeHome, load: Load) -> None:
    home = make_home("b")
    shutil.rmtree(home.path)
    with pytest.raises(ProfileUnusable, match="is gone"):
        load(home)
    assert not home.path.exists()
