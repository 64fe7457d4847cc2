from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.errors import NotFound, ProfileUnusable
from hermes_ws.scope.secrets import Secrets

SECRETS = Secrets({"K": "value-of-K", "L_2": "${K}"})


def test_a_secret_is_revealed_by_name() -> None:
    assert SECRETS.reveal("K") == "value-of-K"
    assert SECRETS.get("K") == "value-of-K"
    assert SECRETS.names() == frozenset({"K", "L_2"})


def test_a_missing_secret_says_where_it_belongs() -> None:
    with pytest.raises(NotFound) as missing:
        SECRETS.reveal("ABSENT")
    assert ".env" in missing.value.hint
    assert missing.value.data["secret"] == "ABSENT"
    assert SECRETS.get("ABSENT") is None


@pytest.mark.parametrize("show", [repr, str, "{}".format, "%s".__mod__])
def test_secrets_cannot_be_printed(show: type[str]) -> None:
    assert "value-of-K" not in show(SECRETS)


@pytest.mark.parametrize("spread", [pickle.dumps, copy.copy, copy.deepcopy])
def test_secrets_are_neither_pickled_nor_copied(spread: type[object]) -> None:
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        spread(SECRETS)


def test_secrets_cannot_be_listed() -> None:
    with pytest.raises(TypeError, match="ask for one by name"):
        list(SECRETS)
    with pytest.raises(TypeError):
        vars(SECRETS)


def test_a_reference_expands_to_the_secret_and_a_double_dollar_to_a_dollar() -> None:
    expand = SECRETS.expand
    assert expand("Bearer ${K}", where="x") == "Bearer value-of-K"
    assert expand("$$ $${K} $K $", where="x") == "$ ${K} $K $"


def test_what_a_secret_holds_is_not_expanded_again() -> None:
    """Case PARSE-05."""
    assert SECRETS.expand("${L_2}", where="x") == "${K}"


def test_a_missing_name_is_an_error_that_names_key_and_file() -> None:
    """Case SCOPE-02: unresolved is an error, never another profile's value."""
    with pytest.raises(ProfileUnusable) as refused:
        SECRETS.expand("a ${ONLY_ELSEWHERE}", where="providers.x.api_key")
    assert "config.yaml: providers.x.api_key" in refused.value.message
    assert ".env" in refused.value.message
    assert refused.value.data == {"key": "providers.x.api_key", "secret": "ONLY_ELSEWHERE"}


@pytest.mark.parametrize("text", ["${", "${K", "${}", "${env:K}", "${K-x}", "${ K }", "${1}"])
def test_a_reference_of_another_syntax_is_refused_and_not_left_half_expanded(text: str) -> None:
    """Case PARSE-08: the same everywhere, with a sentence on how to write it."""
    with pytest.raises(ProfileUnusable, match="cannot be read") as refused:
        SECRETS.expand(text, where="x")
    assert "${NAME}" in refused.value.hint


@given(st.text(st.sampled_from("${}K a:"), max_size=30))
def test_any_text_expands_or_is_refused(text: str) -> None:
    try:
        expanded = SECRETS.expand(text, where="x")
    except ProfileUnusable:
        return
    if "$" not in text:
        assert expanded == text


def test_what_sources_give_fills_in_and_replaces_nothing() -> None:
    secrets = Secrets({"MINE": "value-mine-01"}, plain=frozenset({"CITY"}))
    filled = secrets.filled_in({"MINE": "another-0001", "MORE": "value-more-01"})
    assert (filled.reveal("MINE"), filled.reveal("MORE")) == ("value-mine-01", "value-more-01")
    assert secrets.names() == {"MINE"}
    assert filled.redact("value-more-01") == "«secret:MORE»"


def test_what_is_to_be_covered_as_well_is_shown_by_its_name() -> None:
    secrets = Secrets({"MINE": "value-mine-01"}).hiding({"login": "hunter22-hunter22"})
    shown = secrets.redact("typed hunter22-hunter22 and value-mine-01")
    assert shown == "typed «secret:login» and «secret:MINE»"
    assert secrets.names() == {"MINE"}
