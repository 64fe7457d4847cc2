"""The tools that ask the person for what the agent is not to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.ports import Login, NoAnswerer, QuestionExpired
from hermes_ws.agent.tools import login as login_tool
from hermes_ws.agent.tools.registry import TOOLS
from hermes_ws.agent.tools.tool import ToolContext
from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import ConnectionParams, SecretParams, ValueResult
from hermes_ws.contract.registry import Question
from tests.agent.twins import HandsTwin

SECRET = {"name": "HUB_TOKEN", "prompt": "For hunter2hunter2."}
TARGET = {
    "name": "hub",
    "detail": "hunter2hunter2",
    "required_env": [{"name": "HUB_TOKEN", "prompt": "hunter2hunter2"}],
}


class Person:
    """Answers as a test wants it, or raises."""

    def __init__(self, answer: Params | Login | str | Exception) -> None:
        self.asked: list[Result] = []
        self._answer = answer

    async def ask(self, question: Question, params: Result, *, deadline_s: float | None = None) -> Any:
        return self._say(params)

    async def post(self, params: ConnectionParams) -> Any:
        return self._say(params)

    async def login(self, origin: str, site: str, *, code: bool) -> Any:
        return self._say(None)

    def _say(self, params: Any) -> Any:
        self.asked.append(params)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Piped(HandsTwin):
    """Hands that run one program, which says `output` and is never finished by itself if it is to hang."""

    def __init__(self, output: Sequence[bytes], *, hang: bool = False) -> None:
        super().__init__()
        self.env: Mapping[str, str] = {}
        self.closed = False
        self._output = list(output)
        self._hang = hang

    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Any:
        self.env = env
        return self

    async def close_input(self) -> None: ...

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint()
        if self._output:
            return self._output.pop(0)
        if self._hang:
            await trio.sleep_forever()
        return b""

    async def aclose(self) -> None:
        self.closed = True


async def run(name: str, person: Person, hands: HandsTwin | None = None, /, **arguments: Any) -> ToolOutcome:
    asker: Any = person
    context = ToolContext(
        hands=hands or HandsTwin(),
        asker=asker,
        session_id="s1",
        thread_id="main",
        deadline_s=120.0,
        progress=lambda piece: None,
        redact=lambda text: text.replace("hunter2hunter2", "«secret:PW»"),
    )
    return await TOOLS[name].prepare(arguments).run(context)


@pytest.mark.parametrize(
    ("answer", "says", "wrong"),
    [
        (ValueResult(value="a value"), "HUB_TOKEN is in the profile's .env", False),
        (ValueResult(value=None), "would not give it", True),
        (NoAnswerer("secret"), "This is no refusal", True),
        (QuestionExpired("secret"), "This is no refusal", True),
    ],
)
async def test_the_agent_learns_of_a_secret_only_whether_it_is_there(answer: Any, says: str, wrong: bool) -> None:
    person = Person(answer)
    outcome = await run("request_secret", person, **SECRET)
    assert says in outcome.output
    assert "a value" not in outcome.output
    assert outcome.is_error is wrong
    (asked,) = person.asked
    assert isinstance(asked, SecretParams)
    assert asked.prompt == "For «secret:PW»."


@pytest.mark.parametrize("name", ["", "9LIVES", "A B", "A=B", "Ä"])
async def test_a_secret_has_a_name_that_an_environment_can_hold(name: str) -> None:
    with pytest.raises(InvalidParams):
        await run("request_secret", Person(ValueResult(value="x")), name=name, prompt="why")


async def test_a_connection_is_asked_for_and_the_agent_goes_on() -> None:
    person = Person("srq-a-1")
    outcome = await run("request_connection", person, targets=[TARGET])
    assert "srq-a-1" in outcome.output
    assert not outcome.is_error
    (asked,) = person.asked
    assert isinstance(asked, ConnectionParams)
    assert "hunter2" not in asked.model_dump_json()
    nobody = await run("request_connection", Person(NoAnswerer("connection")), targets=[TARGET])
    assert nobody.is_error


async def test_a_login_is_in_the_environment_of_the_command_and_not_in_its_output() -> None:
    hands = Piped([b"ada:pa", b"ss:123456", b" hunter2hunter2"])
    login = Login("ada", "pass", "123456")
    outcome = await run("run_with_login", Person(login), hands, origin="https://a.example", command="x", code=True)
    assert hands.env == {"LOGIN_USERNAME": "ada", "LOGIN_PASSWORD": "pass", "LOGIN_CODE": "123456"}
    assert outcome.output == "[LOGIN_USERNAME]:[LOGIN_PASSWORD]:[LOGIN_CODE] «secret:PW»"
    assert hands.closed
    assert "pass" not in repr(login)


@pytest.mark.parametrize("problem", [NoAnswerer("vault.unlock_prompt"), QuestionExpired("vault.code")])
async def test_without_a_login_nothing_is_run(problem: Exception) -> None:
    hands = Piped([])
    outcome = await run("run_with_login", Person(problem), hands, origin="https://a.example", command="x")
    assert outcome.is_error
    assert "This is no refusal" in outcome.output
    assert hands.env == {}


async def test_a_command_that_does_not_end_is_ended(autojump_clock: trio.testing.MockClock) -> None:
    hands = Piped([b"so far"], hang=True)
    outcome = await run("run_with_login", Person(Login("ab", "p")), hands, origin="https://a.example", command="x")
    assert outcome.is_error
    assert outcome.output == "so far\n[ended after its deadline]"
    assert hands.closed


async def test_of_a_long_output_its_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_tool, "OUTPUT_BYTES", 8)
    outcome = await run(
        "run_with_login",
        Person(Login("ab", "p")),
        Piped([b"12345", b"67890", b"more"]),
        origin="https://a.example",
        command="x",
    )
    assert outcome.output == "12345678"


def test_no_rule_about_commands_lets_a_login_go() -> None:
    subject = TOOLS["run_with_login"].prepare({"origin": "https://a.example", "command": "git push"}).subject
    assert subject.command is None
    assert "https://a.example: git push" in subject.description
