from hermes_ws.contract.events import Notice
from hermes_ws.journal import events
from hermes_ws.journal.database import Database, ThreadKey
from hermes_ws.wire.cursor import Cursor

KEY = ThreadKey("ses-1", "main")


async def test_smoke(journal: Database) -> None:
    tail = await journal.open_tail(KEY)
    c = await journal.transact(lambda tx: tx.append(KEY, "notice", Notice(level="info", type="t", message="m")))
    assert c == Cursor(1, 1)
    assert tail.head == 1
    assert len(tail.take(Cursor(1, 0), None, 1000).frames) == 1
    found, more = await journal.read(lambda c: events.since(c, KEY, Cursor(1, 0)))
    assert [e.seq for e in found] == [1]
