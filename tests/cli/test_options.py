"""Every option of chat: taken or refused, with which status, on which stream, and what was sent to the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import JsonValue

from hermes_ws.cli.chat import chat
from hermes_ws.cli.frozen import changes
from hermes_ws.cli.main import hermes_ws
from hermes_ws.cli.refused import REFUSED, RefusedOption
from hermes_ws.contract.methods.sessions import Created, CreateParams, SessionList, SessionRow
from tests.cli.conftest import Run
from tests.client.peer import Conversation, Peer

OPTIONS = [
    (["-m", "small"], {"model": "small"}),
    (["--provider", "p"], {"provider": "p"}),
    (["--base-url", "https://m.example", "--api-key", "k"], {"base_url": "https://m.example", "api_key": "k"}),
    (["--reasoning", "low"], {"reasoning": "low"}),
    (["-t", "files, shell"], {"toolsets": ["files", "shell"]}),
    (["--max-turns", "7"], {"max_turns": 7}),
    (["-s", "a,b", "-s", "a"], {"skills": ["a", "b"]}),
    (["--checkpoints"], {"checkpoints": True}),
    (["--yolo"], {"yolo": True}),
    (["--accept-hooks"], {"accept_hooks": True}),
    (["--pass-session-id"], {"pass_session_id": True}),
    (["--ignore-rules"], {"ignore_rules": True}),
    (["--ignore-user-config", "-m", "x"], {"ignore_user_config": True, "model": "x"}),
    (["--safe-mode", "-m", "x"], {"safe_mode": True, "model": "x"}),
    (["--source", "api"], {"source": "api"}),
    (["--in", "/somewhere"], {"cwd": "/somewhere"}),
]


TAKEN = [
    (["-q", "say hi"], None, "hi\n\nResume this session with:\n  hermes-ws chat --resume s-1\n"),
    (["--query", "say hi", "--quiet"], None, "hi\n"),
    (["--query-file", "-", "-Q"], "say from a pipe", "from a pipe\n"),
    (["-z", "say hi", "--usage-file", "/dev/null"], None, "hi\n"),
    (["--oneshot", "-Q"], "say from a pipe", "from a pipe\n"),
    (["-Q", "-q", "say hi", "--format", "text"], None, "hi\n"),
    (["-Q", "-q", "say hi", "-p", "research"], None, "hi\n"),
    (["-Q", "-q", "say hi", "--profile", "research"], None, "hi\n"),
    (["-Q", "-q", "say hi", "--resume", "s-0"], None, "hi\n"),
    (["-Q", "-q", "say hi", "-c"], None, "hi\n"),
    (["-Q", "-q", "say hi", "--continue", "s-0"], None, "hi\n"),
    (["-Q", "-q", "say hi", "-c", "A title", "--create-if-missing"], None, "hi\n"),
    (["-Q", "-q", "say hi", "--in", "/somewhere"], None, "hi\n"),
    (["-Q", "-q", "say hi", "--source", "api"], None, "hi\n"),
]
"""What is taken, from where the prompt comes, and the whole of standard output; the exit status is 0."""

REFUSED_ALONE = [
    (["-q", " "], "-q is blank"),
    (["--query-file", " "], "--query-file is blank"),
    (["-z", ""], "-z is blank"),
    (["--format", "xml", "-q", "hi"], "is not one of"),
    (["--format", "stream-json"], "goes with -q TEXT or --query-file"),
    (["-Q"], "-Q goes with -q TEXT"),
    (["--profile", " "], "--profile is blank"),
    (["--resume", ""], "--resume is blank"),
    (["--create-if-missing"], "add -c TITLE"),
    (["-c", "--create-if-missing"], "add -c TITLE"),
    (["--source", " "], "--source is blank"),
    (["--provider", " "], "--provider is blank"),
    (["--api-key", " "], "--api-key is blank"),
    (["--safe-mode"], "needs --model"),
    (["--ignore-user-config"], "needs --model"),
    (["--base-url", "https://x"], "needs --api-key"),
    (["--base-url", "ftp://x", "--api-key", "k"], "begins with http"),
    (["--base-url", "https://u:p@x", "--api-key", "k"], "neither user"),
    (["--max-turns", "0"], "not in the range"),
    (["--reasoning", "enormous"], "is not one of"),
    (["-m", " "], "--model is blank"),
    (["-t", ","], "--toolsets is blank"),
    (["-q", "a", "-z", "b"], "Give one of"),
    (["--usage-file", "/tmp/u"], "goes with -z"),
    (["--in", ""], "--in is blank"),
]
"""What is refused with exit status 2 and this on standard error, before anything is contacted."""

NOT_REFUSABLE = ("-s", "--oneshot", "--list-tools", "--list-toolsets", "-c")
"""Options that make sense with whatever is said: nothing but an older server or a terminal refuses them."""


def test_every_option_of_the_command_is_in_these_tables() -> None:
    """The list is the command's own, so that a new option cannot be left out."""
    shown = [arguments for arguments, _ in OPTIONS] + [arguments for arguments, _, _ in TAKEN]
    taken = {word for arguments in shown for word in arguments}
    refused = {word for arguments, _ in REFUSED_ALONE for word in arguments}
    elsewhere = {flag for each in REFUSED for flag in each.flags}
    assert elsewhere <= {flag for option in chat.params for flag in option.opts}
    for option in chat.params:
        spelled = set(option.opts)
        if spelled & elsewhere:
            assert spelled <= elsewhere, f"{option.opts}: each spelling is refused"
            continue
        listing = spelled & {"--list-tools", "--list-toolsets"}
        assert spelled & taken or listing, f"{option.opts} is shown to be taken by no row"
        frozen = spelled & {word for arguments, _ in OPTIONS for word in arguments}
        assert spelled & (refused | {*NOT_REFUSABLE}) or frozen, f"{option.opts} is shown to be refused by no row"


@pytest.mark.parametrize(("options", "text", "printed"), TAKEN)
def test_an_option_is_taken(offering: Peer, run: Run, options: list[str], text: str | None, printed: str) -> None:
    if {"--resume", "-c", "--continue"} & {*options} and "--create-if-missing" not in options:
        offering.conversations["s-0"] = Conversation("s-0", "default", "/nowhere")
        row = SessionRow(
            session_id="s-0",
            profile="default",
            title=None,
            state="idle",
            source="cli",
            agent="agent",
            cwd="/nowhere",
            created_at=1.0,
            updated_at=1.0,
            revision=1,
            preview="",
        )
        offering.answers["session.list"] = SessionList(sessions=[row])
    done = run("chat", *options, text=text)
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr
    errors = done.stderr.splitlines()
    assert errors[0].startswith("Session: s-")
    assert errors[-1] == f"session_id: {errors[0].removeprefix('Session: ')}"


@pytest.mark.parametrize(("options", "sent"), OPTIONS[:-2])
def test_an_option_that_is_not_advertised_is_refused_by_its_name(
    peer: Peer, run: Run, options: list[str], sent: dict[str, object]
) -> None:
    """Case SKEW-08: what an older server does not offer is not sent to it, and no session is made without it."""
    peer.parameters = ["cwd", "title", "source"]
    done = run("chat", "-Q", "-q", "say hi", *options)
    assert (done.stdout, done.returncode) == ("", 1)
    refused = next(line for line in done.stderr.splitlines() if "does not support creation options" in line)
    for field in sent:
        assert f"--{field.replace('_', '-')}" in refused
    assert peer.asked("session.create") == []


@pytest.fixture
def offering(peer: Peer) -> Peer:
    """A server that takes every option."""
    peer.parameters = sorted(CreateParams.model_fields.keys())
    return peer


@pytest.mark.parametrize(("options", "sent"), OPTIONS)
def test_an_option_is_frozen_into_the_new_session(
    offering: Peer, run: Run, options: list[str], sent: dict[str, object]
) -> None:
    done = run("chat", "-Q", "-q", "say hi", *options)
    assert (done.stdout, done.returncode) == ("hi\n", 0), done.stderr
    (asked,) = offering.asked("session.create")
    expected = {"source": "oneshot", "subscribe": False} | sent
    assert {name: value for name, value in asked.items() if name not in ("request_id",)} == expected


def test_hooks_may_be_accepted_by_the_environment(offering: Peer, run: Run) -> None:
    run("chat", "-q", "say hi", HERMES_ACCEPT_HOOKS="1")
    assert offering.asked("session.create")[0]["accept_hooks"] is True


def test_what_an_older_server_does_not_offer_is_refused_and_nothing_is_made(peer: Peer, run: Run) -> None:
    """Case SKEW: options are sent only where they are advertised."""
    peer.parameters = ["cwd"]
    done = run("chat", "-q", "say hi", "--yolo", "-m", "small")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "does not support creation options: --model, --yolo" in done.stderr
    assert peer.asked("session.create") == []


def test_a_directory_that_an_older_server_cannot_take_is_a_warning_or_with_in_a_refusal(peer: Peer, run: Run) -> None:
    """Case SKEW: without --in the session works where the server is configured to; with it nothing is made."""
    peer.boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    peer.parameters = []
    warned = run("chat", "-Q", "-q", "say hi")
    assert (warned.stdout, warned.returncode) == ("hi\n", 0)
    assert "does not take a directory" in warned.stderr
    refused = run("chat", "-Q", "-q", "say hi", "--in", "/tmp")
    assert (refused.stdout, refused.returncode) == ("", 1)
    assert "creation options: --in" in refused.stderr
    assert len(peer.asked("session.create")) == 1


def test_a_source_that_the_server_does_not_know_is_an_error(offering: Peer, run: Run) -> None:
    done = run("chat", "-q", "say hi", "--source", "elsewhere")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "knows no source 'elsewhere'" in done.stderr


def test_a_session_that_somebody_else_made_meanwhile_is_gone_on_with(peer: Peer, run: Run) -> None:
    """Looked for and not found, then made by another before the server was asked to: the server says whose it is."""
    peer.parameters = sorted(CreateParams.model_fields.keys())
    theirs = peer.conversations["s-0"] = Conversation("s-0", "default", "/nowhere")
    peer.answers["session.create"] = Created(
        session_id="s-0", thread_id="main", profile="default", revision=1, cursor=theirs.cursor, info={}, existing=True
    )
    done = run("chat", "-Q", "-q", "say hi", "-c", "Theirs", "--create-if-missing")
    assert (done.stdout, done.returncode) == ("hi\n", 0), done.stderr
    assert "Session: s-0\n" in done.stderr
    (asked,) = peer.asked("session.create")
    assert (asked["title"], asked["if_missing"]) == ("Theirs", True)
    looked = peer.asked("session.resume")
    assert [each.get("title") for each in looked] == [None, "Theirs", None]
    assert looked[-1]["session_id"] == "s-0"


@pytest.mark.parametrize("each", REFUSED)
def test_options_of_other_clients_are_refused_with_what_to_use_instead(each: RefusedOption) -> None:
    for flag in each.flags:
        done = CliRunner().invoke(hermes_ws, ["chat", "-q", "hi", flag, *(["x"] if each.takes else [])])
        assert (done.stdout, done.exit_code) == ("", 2)
        assert "unsupported" in done.stderr
        assert each.instead.split()[0] in done.stderr


@pytest.mark.parametrize(("arguments", "told"), REFUSED_ALONE)
def test_what_makes_no_sense_is_refused_before_anything_is_contacted(arguments: list[str], told: str) -> None:
    done = CliRunner().invoke(hermes_ws, ["chat", *arguments], env={"HERMES_HOME": "/nonexistent/home"})
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())
    stream = "stream-json" in arguments
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == (["system", "result"] if stream else [])


def test_a_resume_may_repeat_and_not_change() -> None:
    launch: dict[str, JsonValue] = {"model": "small", "skills": ["a"], "yolo": True}
    info: dict[str, JsonValue] = {"cwd": "/here", "source": "cli"}
    same: dict[str, JsonValue] = {
        "model": "small",
        "skills": ["a"],
        "yolo": True,
        "cwd": "/here",
        "source": "cli",
        "api_key": "new",
    }
    assert changes(same, launch, info) == []
    other: dict[str, JsonValue] = {"model": "big", "checkpoints": True, "cwd": "/there"}
    assert changes(other, launch, info) == ["--model", "--checkpoints", "--in"]


def test_the_tools_are_listed_without_a_server(run: Run, home: Path) -> None:
    tools, families = run("chat", "--list-tools"), run("chat", "--list-toolsets")
    assert (tools.returncode, families.returncode) == (0, 0)
    assert "read_file  (files)" in tools.stdout
    assert "files: read_file" in families.stdout
    assert list(home.iterdir()) == []


def test_a_prompt_may_come_from_a_file_or_a_pipe(peer: Peer, run: Run, tmp_path: Path) -> None:
    (tmp_path / "prompt").write_bytes(b"\xef\xbb\xbfsay from a file")
    assert run("chat", "-Q", "--query-file", str(tmp_path / "prompt")).stdout == "from a file\n"
    assert run("chat", "-Q", "--query-file", "-", text="say from a pipe").stdout == "from a pipe\n"
    assert run("chat", "-Q", "--oneshot", text="say so too").stdout == "so too\n"
    (tmp_path / "blank").write_text(" \n")
    for bad in ("blank", "missing"):
        done = run("chat", "--query-file", str(tmp_path / bad))
        assert (done.stdout, done.returncode) == ("", 1)


def test_stream_json_has_init_then_what_happens_then_one_result(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "say one two three", "--format", "stream-json", "-m", "m", "--in", "/tmp")
    assert done.returncode == 1, "the peer offers no model"
    kinds = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in kinds] == ["system", "result"]
    done = run("chat", "-q", "say one two three", "--format", "stream-json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [lines[0]["type"], lines[0]["subtype"]] == ["system", "init"]
    assert {line["type"] for line in lines[1:-1]} == {"text"}
    end = lines[-1]
    assert (end["type"], end["exit_code"], end["session_id"]) == ("result", 0, "s-1")
    assert "".join(line["text"] for line in lines[1:-1]) == end["text"] == "one two three"
    assert all(isinstance(line["timestamp"], int) for line in lines)


def test_a_run_without_anybody_there_writes_what_it_took_also_when_it_fails(
    peer: Peer, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "deep" / "usage.json"
    done = run("chat", "-z", "say hi", "--usage-file", str(file))
    assert (done.stdout, done.returncode) == ("hi\n", 0)
    told = json.loads(file.read_text())
    assert (told["completed"], told["failed"], told["session_id"], told["model"]) == (True, False, "s-1", "peer")
    assert peer.asked("prompt.submit")[0]["unattended"] is True
    done = run("chat", "-z", "fail", "--usage-file", str(file))
    told = json.loads(file.read_text())
    assert (done.returncode, told["completed"], told["failure"]) == (1, False, "The model broke off.")
    done = run("chat", "-z", "hi", "--usage-file", str(file), "--safe-mode")
    assert done.returncode == 2
    assert "needs --model" in json.loads(file.read_text())["failure"]


def test_the_process_of_a_conversation_loads_no_agent_journal_or_session(peer: Peer, home: Path) -> None:
    import subprocess
    import sys

    from tests.cli.conftest import PATIENCE, environment

    script = (
        "import sys\nfrom hermes_ws.cli.main import hermes_ws\n"
        "try:\n    hermes_ws(['chat', *sys.argv[1:]])\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "rooms = ('hermes_ws.agent', 'hermes_ws.journal', 'hermes_ws.session', 'hermes_ws.hosting', 'sqlite3',\n"
        "         'hermes_ws.contract.catalog')\n"
        "found = sorted(name for name in sys.modules if name.startswith(rooms))\n"
        "sys.exit(f'loaded {found}' if found else 0)\n"
    )
    for arguments, text in (["-q", "say hi"], None), ([], "say hi\n/help\n/quit\n"):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=environment(home),
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
