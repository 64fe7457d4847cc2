from __future__ import annotations

import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.errors import ProfileUnknown, ProfileUnusable
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import ProfileName, mint_identity, read_identity, rename_identity

NO_NAMES = (
    "../../x", "..", ".", "/etc", "a/b", "ok/../evil", "../evil", "", " ", "a b", "a\0", "a\n", "A", "Work", "work.",
    ".work", "-work", "_work", "wörk", "ｗork", "раураl", "x" * 65, "con", "nul", "com1", "lpt9", "a\\b", "~", "~root",
    "%2e%2e", "a:b",
)  # fmt: skip


@pytest.mark.parametrize("text", NO_NAMES)
def test_what_is_no_name_is_an_unknown_profile(text: str) -> None:
    """Cases IDENT-01, IDENT-02, IDENT-03: one grammar, before any path is built."""
    with pytest.raises(ProfileUnknown) as refused:
        ProfileName.parse(text)
    assert refused.value.code == 4064
    assert refused.value.type == "profile_unknown"


@pytest.mark.parametrize("text", ["a", "0", "work", "client-2", "x_y", "x" * 64, "default", "root", "com10", "console"])
def test_a_name_stays_as_it_is_written(text: str) -> None:
    assert str(ProfileName.parse(text)) == text


def test_a_name_cannot_be_made_past_the_grammar() -> None:
    with pytest.raises(ProfileUnknown):
        ProfileName("../x")


@given(st.text(max_size=80))
def test_any_text_is_a_safe_name_or_refused(text: str) -> None:
    try:
        name = ProfileName.parse(text)
    except ProfileUnknown:
        return
    assert name.text.isascii()
    assert not set(name.text) & set("/\\.\0: ")


def test_a_refusal_does_not_repeat_a_whole_book() -> None:
    with pytest.raises(ProfileUnknown) as refused:
        ProfileName.parse("x" * 100_000)
    assert len(refused.value.message) < 200


def test_a_home_without_identity_has_none(home: ProfileHome) -> None:
    assert read_identity(home) is None


def test_an_identity_is_read_back_as_it_was_minted(home: ProfileHome) -> None:
    minted = mint_identity(home, ProfileName("work"))
    assert read_identity(home) == minted
    assert minted.name == "work"
    assert stat.S_IMODE(home.identity.stat().st_mode) == 0o600


def test_a_rename_keeps_the_identity_and_a_clone_gets_its_own(home: ProfileHome) -> None:
    first = mint_identity(home, ProfileName("work"))
    renamed = ProfileHome(home.path.rename(home.path.with_name("renamed")))
    assert read_identity(renamed) == first
    second = mint_identity(renamed, ProfileName("clone"))
    assert (second.id, second.origin) != (first.id, first.origin)
    assert read_identity(renamed) == second


@pytest.mark.parametrize(
    "change",
    [{"origin": "../../ab"}, {"origin": "short"}, {"id": ""}, {"id": "a/b"}, {"created_at": "x"}, {"name": None}],
)
def test_a_damaged_identity_is_refused_and_not_replaced(home: ProfileHome, change: dict[str, object]) -> None:
    mint_identity(home, ProfileName("work"))
    content = json.dumps({**json.loads(home.identity.read_text()), **change})
    home.identity.write_text(content)
    with pytest.raises(ProfileUnusable, match="damaged"):
        read_identity(home)
    assert home.identity.read_text() == content


def test_an_identity_may_carry_more_than_this_version_knows(home: ProfileHome) -> None:
    minted = mint_identity(home, ProfileName("work"))
    home.identity.write_text(json.dumps({**json.loads(home.identity.read_text()), "tags": ["x"]}))
    assert read_identity(home) == minted


def test_a_home_keeps_its_identity_under_another_name(home: ProfileHome) -> None:
    minted = mint_identity(home, ProfileName("work"))
    renamed = rename_identity(home, minted, ProfileName("play"))
    assert (renamed.name, renamed.id, renamed.origin) == ("play", minted.id, minted.origin)
    assert read_identity(home) == renamed
