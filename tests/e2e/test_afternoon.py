"""An afternoon of work: a session builds a small program, and everything that can come between comes between.

A real server with real files, processes and a real crash; only the model is the one that follows a script. In the end
the files, the transcript and the journal are compared with what they must be, word for word where words are ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.gateway_client import Client
from tests.e2e.process import Server, all_gone, children

Serve = Callable[..., Server]
Event = dict[str, Any]

BROKEN = "def add(a, b):\n    return a - b\n"
MENDED = "def add(a, b):\n    return a + b\n"
CHECK = "from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint('all is well')\n"


def call(tool: str, **arguments: Any) -> str:
    """A line of the script that calls a tool."""
    return f"/do tool {tool} {json.dumps(arguments)}"


class Afternoon:
    """One client at work in one session, and what it has seen."""

    def __init__(self, server: Server, project: Path) -> None:
        self.server = server
        self.client: Client = server.connect()
        made = self.client.call("session.create", profile="default", cwd=str(project), checkpoints=True)
        self.session: str = made["session_id"]
        self.answered = 0
        self.cursor: str = made["cursor"]

    def start(self, text: str, **options: Any) -> dict[str, Any]:
        return self.client.submit(self.session, text, **options)

    def answer(self, **result: Any) -> Event:
        """Answer the next question."""
        question = self.client.question(self.answered)
        self.answered += 1
        self.client.answer(question, **result)
        return question

    def work(self, text: str, *answers: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Have something done to its end, answering what is asked."""
        admitted = self.start(text, **options)
        for each in answers:
            self.answer(**each)
        return self.client.finished(admitted["admission_id"])

    def outputs(self, since: int = 0) -> list[Event]:
        return [event["payload"] for event in self.client.events[since:] if event["type"] == "tool.complete"]

    def last(self, type: str, thread: str = "main") -> Event:
        found = [event for event in self.client.events if event["type"] == type and event["thread_id"] == thread]
        return found[-1]

    def journal(self, thread: str = "main", after: str = "1:0") -> list[Event]:
        """All committed events of a thread, as the other way of reading gives them."""
        events: list[Event] = []
        while True:
            page = self.client.call(
                "session.events.since", session_id=self.session, thread_id=thread, after=after, limit=100
            )
            events += page["events"]
            after = page["cursor"]
            if not page["more"]:
                return events

    def transcript(self, thread: str = "main") -> list[tuple[str, str]]:
        page = self.client.call("thread.messages", session_id=self.session, thread_id=thread, limit=200)
        return [(message["role"], message["text"].strip()) for message in page["messages"]]

    def edit(self, operation: str, **payload: Any) -> dict[str, Any]:
        revision = self.client.call("thread.state", session_id=self.session)["revision"]
        return self.client.call(
            "session.mutate",
            session_id=self.session,
            request_id=f"{operation}-{revision}",
            expected_revision=revision,
            operation=operation,
            payload=payload,
        )


def test_an_afternoon(serve: Serve, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Keep functions small.\n")
    server = serve()
    work = Afternoon(server, project)

    build(work)
    delegate(work)
    interrupt(work)
    steer(work)
    fork_id = fork(work)
    put_back(work)
    compact(work)
    again = crash_and_resume(work, serve, server)

    files(project)
    transcripts(again, fork_id)
    journals(again, fork_id)
    again.client.close()
    assert again.server.stop() == 0


def build(work: Afternoon) -> None:
    """Write a program with a mistake, see it fail, mend it, see it work."""
    done = work.work(
        "\n".join(
            (
                "Build a small calculator.",
                call("write_file", path="calc.py", content=BROKEN),
                call("write_file", path="check.py", content=CHECK),
                "/do run python3 -B check.py",
            )
        ),
        {"choice": "session"},
    )
    assert done["outcome"] == "completed"
    made, checked, failed = work.outputs()
    assert not made["is_error"]
    assert not checked["is_error"]
    assert failed["is_error"]
    assert "AssertionError: -1" in failed["output"]
    seen = len(work.client.events)
    mend = call("patch", path="calc.py", edits=[{"old": "a - b", "new": "a + b"}])
    # The command was allowed for the session: nobody is asked again.
    done = work.work(f"Mend it.\n{mend}\n/do run python3 -B check.py")
    assert done["outcome"] == "completed"
    patched, passed = work.outputs(seen)
    assert not patched["is_error"], patched
    assert "all is well" in passed["output"]


def delegate(work: Afternoon) -> None:
    """Two subagents at once: one writes, one reads; both are seen, and their words come back."""
    tasks = [
        {"goal": "/do write README.md A calculator that adds.\n/do say README is written."},
        {"goal": "/do read calc.py\n/do say I have read it."},
    ]
    done = work.work(call("delegate_task", tasks=tasks))
    assert done["outcome"] == "completed"
    rows = work.client.call("subagent.list", session_id=work.session)["subagents"]
    assert [(row["status"], row["depth"], row["tool_count"]) for row in rows] == [("completed", 1, 1)] * 2
    result = work.last("tool.complete")["payload"]["output"]
    assert "README is written." in result
    assert "I have read it." in result
    assert "return a + b" in result


def interrupt(work: Afternoon) -> None:
    """Stop a command that would take all evening; nothing of it stays behind."""
    admitted = work.start("/do say I begin.\n/do run sleep 3000")
    work.answer(choice="once")
    started = work.client.until(lambda e: e["type"] == "tool.start" and e["admission_id"] == admitted["admission_id"])
    before = children(work.server.pid)
    generation = started["execution_generation"]
    asked = {"session_id": work.session, "execution_generation": generation}
    assert work.client.call("session.interrupt", **{**asked, "execution_generation": generation + 1})["outcome"] == (
        "generation_mismatch"
    )
    assert work.client.call("session.interrupt", **asked)["outcome"] == "accepted"
    assert work.client.finished(admitted["admission_id"])["outcome"] == "interrupted"
    assert work.client.call("session.interrupt", **asked)["outcome"] == "no_active_execution"
    slept = {pid: start for pid, start in before.items() if is_sleeping(pid)}
    assert all_gone(slept)


def is_sleeping(pid: int) -> bool:
    try:
        return b"sleep\0003000" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def steer(work: Afternoon) -> None:
    """Say something while it works: it is taken at the next step of the same turn."""
    admitted = work.start("/do ask Which colour?\n\n/do say this is not reached")
    question = work.client.question(work.answered)
    generation = work.last("execution.started")["payload"]["execution_generation"]
    said = work.client.call(
        "session.steer",
        session_id=work.session,
        execution_generation=generation,
        text="/do write colour.txt green",
    )
    assert said["outcome"] == "accepted"
    work.answered += 1
    work.client.answer(question, answers={"q1": "blue"})
    assert work.client.finished(admitted["admission_id"])["outcome"] == "completed"


def fork(work: Afternoon) -> str:
    """Another line from here: the source stays as it is, to the byte."""
    before = work.journal()
    made = work.client.call("thread.fork", session_id=work.session, compaction="disabled", title="another line")
    fork_id: str = made["thread_id"]
    work.client.call("thread.subscribe", session_id=work.session, thread_id=fork_id)
    done = work.work("/do write fork.txt from the fork", thread_id=fork_id)
    assert done["outcome"] == "completed"
    assert work.journal() == before
    return fork_id


def put_back(work: Afternoon) -> None:
    """Spoil a file, and put it back as it was."""
    done = work.work("/do write calc.py spoilt")
    assert done["outcome"] == "completed"
    newest = work.client.call("rollback.list", session_id=work.session)
    assert newest["enabled"]
    checkpoint = newest["checkpoints"][0]
    assert [Path(each).name for each in checkpoint["files"]] == ["calc.py"]
    diff = work.client.call("rollback.diff", session_id=work.session, hash=checkpoint["hash"])
    assert "-    return a + b" in diff["diff"]
    assert "+spoilt" in diff["diff"]
    restored = work.client.call("rollback.restore", session_id=work.session, hash=checkpoint["hash"])
    assert restored["success"]
    assert [Path(each).name for each in restored["restored_files"]] == ["calc.py"]


def compact(work: Afternoon) -> None:
    """Hard: the journal is replaced, and whoever listens is told so and gets the new one from its beginning."""
    done = work.edit("compress", mode="hard", here=2, focus="the calculator")
    assert done["result"]["compressed"]
    assert done["result"]["generation"] == 2
    rebased = work.client.until(lambda e: e["type"] == "thread.rebased")
    assert rebased["cursor"] == "2:1"
    work.client.until(lambda e: e["type"] == "compaction.complete" and e["payload"]["mode"] == "hard")
    old = work.client.call("session.events.since", session_id=work.session, after="1:5")
    assert (old["position"], old["generation"]) == ("rebased", 2)


def crash_and_resume(work: Afternoon, serve: Serve, server: Server) -> Afternoon:
    """Kill the server between two steps: the next one goes on with the same input, and repeats nothing."""
    admitted = work.start("/do write crash.txt written once\n\n/do wait 2\n/do say I survived.")
    done = work.client.until(
        lambda e: e["type"] == "message.complete" and e["payload"]["role"] == "tool" and e["seq"] > 5
        and e["admission_id"] == admitted["admission_id"]
    )  # fmt: skip
    left = children(server.pid)
    server.kill()
    assert all_gone(left)
    seen = len(work.client.events)
    again = serve()
    work.server = again
    work.client.close()
    client = again.connect()
    client.events = []
    snapshot = client.call("session.resume", session_id=work.session, after=done["cursor"])
    assert snapshot["position"] == "ok"
    work.client, work.answered = client, 0
    assert client.finished(admitted["admission_id"])["outcome"] == "completed"
    lost = client.until(lambda e: e["type"] == "execution.lost")
    assert lost["payload"]["resumes"]
    receipt = client.call("prompt.receipt", session_id=work.session, admission_id=admitted["admission_id"])
    assert (receipt["status"], receipt["outcome"]) == ("finished", "completed")
    writes = [e for e in client.events if e["type"] == "tool.start"]
    assert not writes, "what had happened before the crash is not done again"
    assert seen
    return work


def files(project: Path) -> None:
    """What is there is what was made, and nothing else."""
    assert {path.name: path.read_text() for path in project.iterdir()} == {
        "AGENTS.md": "Keep functions small.\n",
        "calc.py": MENDED,
        "check.py": CHECK,
        "README.md": "A calculator that adds.",
        "colour.txt": "green",
        "fork.txt": "from the fork",
        "crash.txt": "written once",
    }


def transcripts(work: Afternoon, fork_id: str) -> None:
    """After the compaction: its summary, what was kept, and what came since. In the fork: all that came before it."""
    main = work.transcript()
    assert main[0][0] == "user"
    assert main[0][1].startswith("Summary of the conversation so far")
    assert "Build a small calculator." in main[0][1]
    said = [(role, text) for role, text in main[1:] if role != "tool"]
    assert said[0] == ("user", "/do write calc.py spoilt")
    assert said[-3][0] == "user"
    assert said[-3][1].startswith("/do write crash.txt written once")
    assert said[-1] == ("assistant", said[-1][1])
    assert said[-1][1].endswith("I survived.")
    other = work.transcript(fork_id)
    assert other[0][1].startswith("Build a small calculator.")
    users = [text for role, text in other if role == "user"]
    assert users[-2:] == ["/do write colour.txt green", "/do write fork.txt from the fork"]
    assert ("assistant", "I begin.") in other
    for thread in ("main", fork_id):
        valid(work, thread)


def valid(work: Afternoon, thread: str) -> None:
    """Each call has its result right behind it: a history that providers take."""
    page = work.client.call("thread.messages", session_id=work.session, thread_id=thread, limit=200)
    waiting: list[str] = []
    for message in page["messages"]:
        calls = [block["call_id"] for block in message["content"] if block["type"] == "tool_call"]
        results = [block["call_id"] for block in message["content"] if block["type"] == "tool_result"]
        if results:
            assert results == waiting
            waiting = []
        else:
            assert not waiting
            waiting = calls
    assert not waiting


def journals(work: Afternoon, fork_id: str) -> None:
    """Numbered without a gap, one end for each execution but the one that was lost, in the newest generation alone."""
    main = work.journal(after="2:0")
    assert [event["cursor"] for event in main] == [f"2:{number}" for number in range(1, len(main) + 1)]
    assert main[0]["type"] == "thread.rebased"
    started = [e["payload"]["execution_generation"] for e in main if e["type"] == "execution.started"]
    ended = [e["execution_generation"] for e in main if e["type"] == "execution.finished"]
    lost = [e["payload"]["execution_generation"] for e in main if e["type"] == "execution.lost"]
    assert started == [lost[0], lost[0] + 1]
    assert ended == [lost[0] + 1]
    other = work.journal(fork_id)
    assert other[0]["type"] == "thread.forked"
    assert [event["cursor"] for event in other] == [f"1:{number}" for number in range(1, len(other) + 1)]
    assert [e["payload"]["outcome"] for e in other if e["type"] == "execution.finished"] == ["completed"]
    graph = work.client.call("session.graph", session_id=work.session)
    assert [each["thread_id"] for each in graph["forks"]] == [fork_id]
    assert len(graph["subagents"]) == 2
    rows = work.client.call("subagent.list", session_id=work.session)["subagents"]
    assert [row["status"] for row in rows] == ["completed", "completed"], "the roster outlives compaction and crash"
