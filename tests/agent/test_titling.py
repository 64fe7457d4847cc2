"""Titles that a model gives: nothing is carried out for them, and what models put around them is taken off."""

from __future__ import annotations

import pytest

from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.models.model import EndPiece, ReasoningPiece, TextPiece, ToolCallPiece, UsagePiece
from hermes_ws.agent.pricing import UNPRICED, Prices
from hermes_ws.agent.titling import SAID, TITLE, cleaned, cut, first_words, suggest
from hermes_ws.contract.errors import ModelFailed
from hermes_ws.scope.secrets import Secrets
from hermes_ws.scope.sections import PriceConfig
from tests.agent.scene import Replies, done
from tests.agent.twins import NO_SECRETS


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ('"Fix the build."', "Fix the build"),
        ("**Title: Fix the build**", "Fix the build"),
        ("# Fix the build\n", "Fix the build"),
        ("Let me think: it is a build.\n\nFix the build", "Fix the build"),
        ("„Den Bau reparieren“", "Den Bau reparieren"),
        ("What is 3*4?", "What is 3*4?"),
        ("C++ and\t Rust", "C++ and Rust"),
        ("a\x1b[31mb\u202ec", "a[31mbc"),
        ("", ""),
        (' "" ', ""),
    ],
)
def test_what_models_put_around_a_title_is_taken_off(said: str, title: str) -> None:
    assert cleaned(said) == title


def test_a_title_fits_on_a_line() -> None:
    long = "word " * 40
    assert len(cleaned(long)) <= TITLE
    assert cut(long.strip()).endswith("word…")
    assert first_words("\n/do run x\n  Tidy   the shed\nnow") == "Tidy the shed"
    assert first_words("/do run x") == "/do run x"


SECRETS = Secrets({"KEY": "sk-abcdef123456"})


async def test_a_model_is_shown_how_it_began_and_what_it_consumed_is_counted() -> None:
    model = Replies([ReasoningPiece("hm"), TextPiece("Tidying "), TextPiece("the shed"), UsagePiece(40, 3), *done()])
    prices = Prices({(model.provider, model.name): PriceConfig(input=100_000, output=100_000)})
    title, usage = await suggest(model, "Tidy\nthe shed", "Done: sk-abcdef123456", redaction=SECRETS, prices=prices)
    assert title == "Tidying the shed"
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (40, 3, 4.3)
    asked = model.requests[0]
    assert asked.messages[0].text == "user> Tidy\nuser> the shed\nassistant> Done: «secret:KEY»"
    assert not asked.tools


async def test_a_model_that_goes_on_talking_has_given_no_title() -> None:
    model = Replies([TextPiece("x" * (SAID + 1)), UsagePiece(1, 1), *done()])
    title, usage = await suggest(model, "a", "b", redaction=NO_SECRETS, prices=UNPRICED)
    assert (title, usage.output_tokens) == ("", 1)


async def test_a_call_is_no_title() -> None:
    model = Replies([ToolCallPiece("1", "terminal", {"command": "rm x"}), EndPiece("tool_calls")])
    title, _ = await suggest(model, "a", "b", redaction=NO_SECRETS, prices=UNPRICED)
    assert title == ""


async def test_half_a_title_is_none() -> None:
    with pytest.raises(ModelFailed):
        await suggest(Replies([TextPiece("Half a")]), "a", "b", redaction=NO_SECRETS, prices=UNPRICED)


async def test_a_conversation_that_is_named_is_not_carried_out() -> None:
    title, _ = await suggest(
        LoopbackModel(), "/do fail model_failed\nTidy", "/do say x", redaction=NO_SECRETS, prices=UNPRICED
    )
    assert title == "Tidy"
