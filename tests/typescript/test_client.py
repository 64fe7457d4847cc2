"""The generated types and the client on top of them: checked by the compiler, and run against a server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Server, write_home
from tests.typescript.conftest import BASE, CLIENT


def compiled(tsc: list[str], *arguments: str) -> str:
    done = subprocess.run([*tsc, *arguments], capture_output=True, text=True, env=BASE, check=False, timeout=120)
    return done.stdout + done.stderr


def test_types_and_client_are_sound(tsc: list[str]) -> None:
    assert compiled(tsc, "--project", str(CLIENT)) == ""


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('await gateway.call("session.created", {});', "session.created"),
        ('await gateway.call("prompt.submit", { session_id: "s", input_id: 1 });', "Type 'number'"),
        ('await gateway.call("prompt.submit", { session_id: "s", input_id: "i", colour: "red" });', "colour"),
        ('const n: number = (await gateway.call("session.create", {})).session_id;', "number"),
        ('gateway.on("message.complete", (event) => event.payload.colour);', "colour"),
        ('new Map<string, Options>().set("x", { token: "t", questions: { approval: () => ({}) } });', "ApprovalResult"),
    ],
)
def test_what_the_contract_does_not_have_does_not_compile(
    tsc: list[str], tmp_path: Path, line: str, complaint: str
) -> None:
    wrong = tmp_path / "wrong.ts"
    source = CLIENT / "src" / "gateway.ts"
    wrong.write_text(
        f'import {{ Gateway, type Options }} from "{source}";\n'
        "export async function wrong(gateway: Gateway, options: Options): Promise<void> {\n"
        f"  void options;\n  {line}\n}}\nvoid Gateway;\n"
    )
    flags = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--allowImportingTsExtensions"]
    said = compiled(tsc, *flags, "--types", "", str(wrong))
    assert complaint in said
    assert "wrong.ts" in said
    assert "gateway.ts(" not in said


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("typescript")
    asking = "approvals:\n  rules:\n    - tool: terminal\n      decision: ask\n"
    write_home(place / "homes" / "default", env={}, config=asking)
    server = Server(place / "homes", place / "server.log", BASE)
    yield server
    assert server.stop() == 0


def run(node: Path, server: Server, text: str, *, token: str | None = None) -> subprocess.CompletedProcess[str]:
    script = [str(node), str(CLIENT / "example" / "ask.ts"), server.url, token or server.token, text]
    return subprocess.run(script, capture_output=True, text=True, env=BASE, check=False, timeout=60)


def test_the_example_asks_allows_and_prints_the_answer(node: Path, server: Server) -> None:
    done = run(node, server, "/do run echo from the shell")
    assert done.returncode == 0, done.stderr
    assert "allowed: echo from the shell" in done.stdout
    assert "from the shell" in done.stdout.split("allowed:", 1)[1]
    assert done.stdout.rstrip().endswith("outcome: completed")


def test_a_wrong_token_is_said_to_be_no_connection(node: Path, server: Server) -> None:
    done = run(node, server, "hello", token="wrong")
    assert done.returncode != 0
    assert "cannot connect" in done.stderr


@pytest.fixture
def told(node: Path, server: Server, tmp_path: Path) -> Callable[[str], str]:
    """What a program prints that uses the client; it may look at the sockets that were made."""

    def run(program: str) -> str:
        script = tmp_path / "program.ts"
        script.write_text(BEGINNING.replace("GATEWAY", str(CLIENT / "src" / "gateway.ts")) + program)
        arguments = [str(node), str(script), server.url, server.token]
        done = subprocess.run(arguments, capture_output=True, text=True, env=BASE, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_client_comes_back_and_goes_on_where_it_was(told: Callable[[str], str]) -> None:
    seen = [int(each) for each in told(COMING_BACK).split()]
    assert seen == list(range(1, len(seen) + 1)), "a gap or a repetition"


def test_what_is_gone_or_refused_meanwhile_is_told_and_nothing_is_tried_for_ever(told: Callable[[str], str]) -> None:
    assert told(GONE).split("\n") == [
        "dropped session_unknown, sockets 2",
        "still there true",
        "revoked 4501",
        "refused 4501, sockets 2",
        "",
    ]


def test_an_answerer_that_fails_leaves_the_question_open_and_a_return_asks_nobody_twice(
    told: Callable[[str], str],
) -> None:
    """Cases ASK-10, ASK-15."""
    assert told(ASKED).split("\n") == ["failed once", "still open 1", "asked 1, sockets 2, outcome completed", ""]


BEGINNING = """
import { Gateway } from "GATEWAY";

const [, , url, token] = process.argv;
const sockets = [];
const Real = globalThis.WebSocket;
globalThis.WebSocket = class extends Real {
  constructor(...args) { super(...args); sockets.push(this); }
};
const after = (gateway, type) => new Promise((resolve) => gateway.on(type, (event) => resolve(event.payload)));
"""

GONE = """
const owner = await Gateway.connect(url, { token });
const { session_id, revision } = await owner.call("session.create", { subscribe: false });
const mine = () => sockets.slice(1);
let dropped;
const gone = new Promise((resolve) => { dropped = resolve; });
const gateway = await Gateway.connect(url, {
  token, retryMs: 1000, dropped: (thread, why) => dropped([thread.session_id, why.type]),
});
await gateway.follow({ session_id });
mine()[0].close(4400);
await owner.call("session.mutate", {
  session_id, request_id: "away", expected_revision: revision, operation: "delete", payload: {},
});
const [which, why] = await gone;
console.log(`dropped ${which === session_id ? why : which}, sockets ${mine().length}`);
console.log(`still there ${(await gateway.call("gateway.ping", {})).ok}`);
gateway.close();

const narrow = async (name, retryMs) => {
  const made = await owner.call("token.create", { name, rights: ["observe"] });
  let end;
  const ended = new Promise((resolve) => { end = resolve; });
  const first = sockets.length;
  const client = await Gateway.connect(url, { token: made.token, retryMs, ended: (why) => end(why.code) });
  const revoke = () => owner.call("token.revoke", { token_id: made.token_id });
  return { ended, revoke, made: () => sockets.slice(first), client };
};
const one = await narrow("there", 10);
await one.revoke();
console.log(`revoked ${await one.ended}`);
const other = await narrow("away", 1000);
other.made()[0].close(4400);
await other.revoke();
console.log(`refused ${await other.ended}, sockets ${other.made().length}`);
owner.close();
"""

ASKED = """
let asked = 0;
let answer;

let heard = () => {};
const failed = new Promise((resolve) => { heard = resolve; });
const clarify = () => { heard(); throw new Error("no window"); };
const bad = await Gateway.connect(url, { token, questions: { clarify } });
const { session_id } = await bad.call("session.create", { subscribe: false });
await bad.follow({ session_id });
const opened = after(bad, "request.opened");
await bad.call("prompt.submit", { session_id, input_id: "asks", text: "/do ask Which colour?" });
const { id } = await opened;
await failed;
console.log("failed once");
await bad.call("gateway.ping", {});
const open = (await bad.call("question.list", {})).questions.filter((each) => each.id === id);
console.log(`still open ${open.length}`);

const before = sockets.length;
let asking = () => {};
const isAsked = new Promise((resolve) => { asking = resolve; });
const good = await Gateway.connect(url, {
  token, retryMs: 10, questions: {
    clarify: () => {
      asked += 1;
      asking();
      return new Promise((resolve) => { answer = resolve; });
    },
  },
});
await good.follow({ session_id });
await isAsked;
sockets[before].close(4400);
const finished = after(good, "execution.finished");
while (sockets.length === before + 1) await new Promise((resolve) => setTimeout(resolve, 5));
answer({ answers: { q1: "blue" } });
const { outcome } = await finished;
console.log(`asked ${asked}, sockets ${sockets.length - before}, outcome ${outcome}`);
bad.close();
good.close();
"""

COMING_BACK = """
const gateway = await Gateway.connect(url, { token, retryMs: 10 });
const { session_id, cursor } = await gateway.call("session.create", { subscribe: false });
await gateway.follow({ session_id, after: cursor });
const seen = [];
for (const type of ["execution.queued", "execution.started", "message.start", "message.complete", "usage.update",
                    "session.info", "execution.finished", "notice"]) {
  gateway.on(type, (event) => seen.push(event.seq));
}
const finished = (count) => new Promise((resolve) => {
  let left = count;
  gateway.on("execution.finished", () => { if (--left === 0) resolve(); });
});
const first = finished(1);
await gateway.call("prompt.submit", { session_id, input_id: "one", text: "one" });
await first;
const second = finished(1);
await gateway.call("prompt.submit", { session_id, input_id: "two", text: "two" });
sockets[0].close(4400);
await second;
console.log(seen.join(" "));
gateway.close();
"""
