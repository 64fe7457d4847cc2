"""The generated types and the client on top of them: checked by the compiler, and run against a server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
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


def test_a_client_comes_back_and_goes_on_where_it_was(node: Path, server: Server, tmp_path: Path) -> None:
    script = tmp_path / "back.ts"
    script.write_text(COMING_BACK.replace("GATEWAY", str(CLIENT / "src" / "gateway.ts")))
    done = subprocess.run(
        [str(node), str(script), server.url, server.token],
        capture_output=True,
        text=True,
        env=BASE,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    seen = [int(each) for each in done.stdout.split()]
    assert seen == list(range(1, len(seen) + 1)), "a gap or a repetition"


COMING_BACK = """
import { Gateway } from "GATEWAY";

const [, , url, token] = process.argv;
const sockets = [];
const Real = globalThis.WebSocket;
globalThis.WebSocket = class extends Real {
  constructor(...args) { super(...args); sockets.push(this); }
};
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
