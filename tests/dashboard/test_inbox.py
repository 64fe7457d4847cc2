"""Questions of each kind, in the inbox of the page: what is shown of them, and what becomes of an answer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from hermes_ws.contract.questions import QUESTIONS
from tests.dashboard.test_stories import say, start_session
from tests.e2e.conftest import two_homes
from tests.e2e.process import Server, write_home
from tests.session.test_sudo import FAKE, OFF

Visit = Callable[..., Page]

CANARY = "canary-typed-on-the-page-91"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The two homes, one whose agents have a vault and few turns, one in a hurry, and one whose commands may sudo."""
    place = tmp_path_factory.mktemp("inbox")
    sudo = place / "programs" / "sudo"
    sudo.parent.mkdir()
    sudo.write_text(FAKE)
    sudo.chmod(0o755)
    homes = two_homes(place / "homes")
    write_home(homes / "careful", env={}, config="agent:\n  toolsets: [vault, plan]\n  max_turns: 2\n")
    write_home(homes / "hurried", env={}, config="questions:\n  deadline_s: 8\n")
    write_home(homes / "trusted", env={}, config=OFF)
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment["PATH"] = f"{sudo.parent}:{environment['PATH']}"
    server = Server(homes, place / "server.log", environment)
    yield server
    assert server.stop() == 0


def tool(name: str, /, **arguments: object) -> str:
    return f"/do tool {name} {json.dumps(arguments)}"


def asked(page: Page, kind: str) -> Locator:
    question = page.locator(f".question[data-kind='{kind}']")
    expect(question).to_have_count(1)
    return question


def test_a_vault_is_opened_and_given_a_login_and_a_code(visit: Visit, shots: Path) -> None:
    page = visit()
    start_session(page, "careful")
    say(page, tool("run_with_login", origin="https://example.org", command='echo "$LOGIN_USERNAME"', code=True))
    asked(page, "approval").get_by_role("button", name="Allow once").click()
    unlock = asked(page, "vault.unlock_prompt")
    expect(unlock).to_contain_text("choose a password")
    expect(unlock.get_by_label("Password of the vault")).to_have_attribute("type", "password")
    unlock.get_by_label("Password of the vault").fill(f"{CANARY}-vault")
    page.screenshot(path=shots / "vault.png")
    unlock.get_by_role("button", name="Unlock").click()
    login = asked(page, "vault.save_login")
    expect(login).to_contain_text("https://example.org")
    login.get_by_label("User name").fill("ada-of-tests")
    login.get_by_label("Password", exact=True).fill(CANARY)
    login.get_by_role("button", name="Save").click()
    code = asked(page, "vault.code")
    expect(code).to_contain_text("example.org")
    code.get_by_label("Code").fill("123456")
    code.get_by_role("button", name="Answer").click()
    expect(page.locator(".tool .output")).to_have_text("[LOGIN_USERNAME]")
    assert CANARY not in page.content()
    assert CANARY not in json.dumps(page.evaluate("({...localStorage})"))


def test_a_wrong_password_says_so_and_whoever_does_not_want_to_open_the_vault_too(visit: Visit, server: Server) -> None:
    client = server.connect()
    client.call("vault.unlock", profile="careful", password=f"{CANARY}-vault")
    client.call("vault.lock", profile="careful")
    client.close()
    page = visit()
    start_session(page, "careful")
    say(page, tool("run_with_login", origin="https://other.example", command="true"))
    asked(page, "approval").get_by_role("button", name="Allow once").click()
    question = asked(page, "vault.unlock_prompt")
    expect(question.get_by_role("alert")).to_have_count(0)
    question.get_by_label("Password of the vault").fill("not the password")
    question.get_by_role("button", name="Unlock").click()
    expect(question.get_by_role("alert").first).to_have_text("That is not the password of this vault. 2 more tries.")
    question.get_by_role("button", name="Not now").click()
    expect(page.locator(".tool .output")).to_contain_text("The person")
    expect(page.locator(".question")).to_have_count(0)


def test_a_password_for_sudo_is_typed_in_unseen_and_a_wrong_one_is_told(visit: Visit) -> None:
    page = visit()
    start_session(page, "trusted")
    for given, then in (("wrong", "1 incorrect password attempt"), ("pass-of-the-person-4711", "became root")):
        say(page, "/do run sudo id -u")
        asked(page, "approval").get_by_role("button", name="Allow once").click()
        question = asked(page, "sudo")
        expect(question).to_contain_text("sudo id -u")
        expect(question.get_by_label("Password")).to_have_attribute("type", "password")
        question.get_by_label("Password").fill(given)
        question.get_by_role("button", name="Answer").click()
        expect(page.locator(".tool .output").last).to_contain_text(then)
        expect(page.locator(".pane .state")).to_have_text("")
    assert "pass-of-the-person-4711" not in page.content()


def test_a_tool_of_another_program_is_waited_for_where_all_can_see_it(visit: Visit, server: Server) -> None:
    """The program answers, or a person says in its place that it cannot."""
    offered = {"name": "clipboard", "description": "Reads the clipboard.", "parameters": {"type": "object"}}
    program = server.connect(server_requests=["client_tool"], client_tools=[offered])
    page = visit()
    start_session(page, "second")
    for turn, given in enumerate(("copied words", None)):
        say(page, tool("clipboard", which="main"))
        question = asked(page, "client_tool")
        expect(question).to_contain_text("clipboard")
        expect(question.locator(".profile")).to_have_text("second")
        if given is None:
            question.get_by_role("button", name="Tell the agent that it cannot be run").click()
        else:
            program.answer(program.question(turn), output=given, is_error=False)
        expect(page.locator(".question")).to_have_count(0)
        expect(page.locator(".tool .output").last).to_contain_text(given or "cannot be run now")
        expect(page.locator(".pane .state")).to_have_text("")
    program.close()


def test_a_question_says_until_when_it_waits_and_what_happens_then(visit: Visit, shots: Path) -> None:
    page = visit()
    start_session(page, "hurried")
    say(page, "/do run touch never-made")
    question = page.locator(".question")
    expect(question.locator(".deadline")).to_contain_text("Answer until")
    expect(question.locator(".deadline")).to_contain_text("Without an answer it is not done.")
    expect(question.get_by_role("timer")).to_contain_text("seconds")
    page.screenshot(path=shots / "deadline.png")
    expect(question).to_contain_text("Nobody answered in time.")
    assert not page.title().startswith("("), "what is over waits for nobody"
    expect(question.get_by_role("button", name="Allow once")).to_have_count(0)
    expect(page.locator(".tool .dot.failed")).to_have_count(1)
    question.get_by_role("button", name="Dismiss").click()
    expect(page.locator(".question")).to_have_count(0)


def test_what_an_agent_would_like_to_use_is_connected_or_left(visit: Visit, server: Server, shots: Path) -> None:
    page = visit()
    start_session(page, "second")
    hub = {
        "name": "hub",
        "detail": "To read the issues.",
        "required_env": [{"name": "HUB_TOKEN", "prompt": "From the settings of the hub."}],
    }
    mail = {"name": "mail", "kind": "mcp", "required_env": [{"name": "MAIL_KEY"}]}
    say(page, tool("request_connection", targets=[hub, mail]))
    question = asked(page, "connection")
    expect(question).to_contain_text("To read the issues.")
    expect(question).to_contain_text("From the settings of the hub.")
    note = page.locator(".note", has_text="Asked to connect: hub, mail")
    expect(note).to_contain_text("Waits for an answer")
    page.screenshot(path=shots / "connection.png")
    question.get_by_role("checkbox").last.uncheck()
    question.get_by_label("HUB_TOKEN").fill(CANARY)
    question.get_by_role("button", name="Connect").click()
    expect(page.locator(".question")).to_have_count(0)
    expect(note).to_contain_text("Answered.")
    client = server.connect()
    names = client.call("secrets.names", profile="second")["names"]
    client.close()
    assert "HUB_TOKEN" in names
    assert "MAIL_KEY" not in names
    assert CANARY not in page.content()


def test_a_secret_is_typed_in_unseen_or_not_given(visit: Visit, server: Server) -> None:
    page = visit()
    start_session(page, "default")
    say(page, tool("request_secret", name="WANTED_KEY", prompt="For the weather."))
    question = asked(page, "secret")
    expect(question).to_contain_text("For the weather.")
    expect(question.get_by_label("WANTED_KEY")).to_have_attribute("type", "password")
    question.get_by_label("WANTED_KEY").fill(CANARY)
    question.get_by_label("WANTED_KEY").press("Enter")
    expect(page.locator(".tool .output")).to_contain_text("in the profile's .env now")
    say(page, tool("request_secret", name="OTHER_KEY", prompt="For something else."))
    asked(page, "secret").get_by_role("button", name="Not now").click()
    expect(page.locator(".tool .output").last).to_contain_text("would not give it")
    assert CANARY not in page.content()


def test_an_agent_that_used_its_turns_goes_on_or_stops(visit: Visit) -> None:
    page = visit()
    start_session(page, "careful")
    say(page, "\n/do say next\n".join([tool("todo")] * 3) + "\n/do say the end of it")
    question = asked(page, "continue")
    expect(question).to_contain_text("Turns until now: 2")
    question.get_by_role("button", name="Go on").click()
    expect(page.locator(".message:not(.user)").last).to_contain_text("the end of it")


def test_a_refusal_tells_the_agent_why(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do run touch no-such-thing")
    question = asked(page, "approval")
    question.get_by_label("If denied: why, for the agent").fill("Use the other directory.")
    question.get_by_role("button", name="Deny").click()
    expect(page.locator(".tool, .message").last).to_contain_text("Use the other directory.")


def test_what_is_hidden_in_a_command_is_seen_before_it_is_allowed(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do run touch \u202etxt.elif\u202c \u001b[8mhidden\u001b[0m\u200b")
    command = asked(page, "approval").locator(".command")
    expect(command).to_have_text("touch ⟨U+202E⟩txt.elif⟨U+202C⟩ ␛[8mhidden␛[0m⟨U+200B⟩")
    page.locator(".question").get_by_role("button", name="Deny").click()


def test_what_is_half_typed_stays_when_other_questions_come_and_go(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do ask Which colour?")
    box = page.locator(".question").get_by_label("Which colour?")
    box.fill("helio")
    box.focus()
    start_session(page, "second")
    say(page, "/do run touch another")
    expect(page.locator(".question")).to_have_count(2)
    page.locator(".question[data-kind='approval']").get_by_role("button", name="Deny").click()
    expect(page.locator(".question")).to_have_count(1)
    expect(box).to_have_value("helio")
    page.evaluate("dispatchEvent(new Event('online'))")
    box.press("End")
    box.type("trope")
    page.locator(".question").get_by_role("button", name="Answer").click()
    expect(page.locator(".question")).to_have_count(0)


def test_each_kind_that_there_is_has_a_form_of_its_own(visit: Visit) -> None:
    """No kind of the contract is shown as raw data; one that is not known is, and says what to do."""
    page = visit()
    kinds: dict[str, dict[str, object]] = {
        "approval": {"description": "d", "rule": "r", "choices": ["once", "deny"], "command": "c"},
        "clarify": {"questions": [{"qid": "0", "question": "q"}]},
        "sudo": {"command": "c"},
        "secret": {"name": "n", "prompt": "p"},
        "continue": {"turns": 3},
        "vault.unlock_prompt": {"backend": "b", "display_name": "d"},
        "vault.save_login": {"origin": "https://o", "site": "o"},
        "vault.code": {"site": "o", "hint": "h"},
        "connection": {"targets": [{"name": "n", "kind": "skill", "action": "install", "required_env": []}]},
        "client_tool": {"call_id": "c", "tool": "clipboard", "arguments": {"which": "main"}},
        "of.tomorrow": {"some": "thing"},
    }
    assert kinds.keys() - {"of.tomorrow"} == QUESTIONS.keys()
    said = page.evaluate(
        """async kinds => { const {body} = await import("/questions.js");
        return Object.fromEntries(Object.entries(kinds).map(([kind, params]) => {
          const place = document.createElement("div");
          place.append(...body({id: "q", kind, profile: "p", params}, () => undefined).filter(each => each));
          return [kind, {text: place.textContent, buttons: place.querySelectorAll("button").length}];
        })); }""",
        kinds,
    )
    for kind in QUESTIONS:
        assert "{" not in said[kind]["text"], kind
        assert said[kind]["buttons"] >= 1, kind
    assert "Reload the page" in said["of.tomorrow"]["text"]
    assert "clipboard" in said["client_tool"]["text"]
