"""A session as a text to read and as data to keep."""

from __future__ import annotations

import orjson

from hermes_ws.contract.content import (
    FileBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.session.export import FORMAT, VERSION, ExportedThread, as_json, as_markdown

RECORD = SessionRecord(
    "ses-1", "Taxes", False, "default", "/home/user", "cli", {}, "owner", None, "digest", 1, 86_400.0, 90_000.0, False
)
ASKED = Message(message_id="m-1", role="user", text="What is in the shed?")
CALLED = Message(
    message_id="m-2",
    role="assistant",
    text="Let me look.",
    content=[
        ReasoningBlock(text="A shed.\nLook first."),
        TextBlock(text="Let me look."),
        ToolCallBlock(call_id="c1", name="terminal", arguments={"command": "ls shed"}),
    ],
)
GAVE = Message(
    message_id="m-3",
    role="tool",
    text="",
    content=[
        ToolResultBlock(call_id="c1", name="terminal", output="a ```fence````"),
        ToolResultBlock(call_id="c2", name="read_file", output="no such file", is_error=True),
        ImageBlock(blob="a" * 64, media_type="image/png"),
        FileBlock(blob="b" * 64, media_type="text/plain", name="notes.txt", size=3),
    ],
)
MAIN = ExportedThread("main", "main", None, [ASKED, CALLED, GAVE])
FORK = ExportedThread("thr-1", "fork", "Another way", [ASKED])


def test_as_a_text_it_can_be_read_and_nothing_in_it_ends_a_block_early() -> None:
    assert (
        as_markdown("work", RECORD, [MAIN]).decode()
        == f"""\
# Taxes

Profile work, agent default, begun 1970-01-02 00:00 UTC.

## User

What is in the shed?

## Assistant

> A shed.
> Look first.


Let me look.

Calls `terminal`:

```json
{{
  "command": "ls shed"
}}
```

## Tools

`terminal`:

`````
a ```fence````
`````

`read_file` failed:

```
no such file
```

[image/png: {"a" * 64}]

[notes.txt: {"b" * 64}]
"""
    )


def test_several_threads_have_a_heading_each() -> None:
    text = as_markdown("work", RECORD, [MAIN, FORK]).decode()
    assert "# main (main)\n" in text
    assert "# Another way (fork)\n" in text


def test_as_data_everything_is_whole() -> None:
    kept = orjson.loads(as_json("work", RECORD, [MAIN, FORK]))
    assert (kept["format"], kept["version"]) == (FORMAT, VERSION)
    assert kept["session"] == {
        "session_id": "ses-1",
        "profile": "work",
        "title": "Taxes",
        "agent": "default",
        "source": "cli",
        "created_at": 86_400.0,
        "updated_at": 90_000.0,
    }
    assert [thread["thread_id"] for thread in kept["threads"]] == ["main", "thr-1"]
    assert [Message.model_validate(each) for each in kept["threads"][0]["messages"]] == [ASKED, CALLED, GAVE]
