"""The life of a profile as its clients see it: who is told, who may stay, and what goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server

Serve = Callable[..., Server]
PASSPHRASE = "correct horse battery"


def bound(server: Server, profile: str) -> Client:
    return Client(server.url.removesuffix("/ws") + f"/p/{profile}/ws", server.token)


def names(client: Client) -> list[str]:
    return [row["name"] for row in client.call("profiles.list")["profiles"]]


def closed_with(client: Client) -> int:
    with pytest.raises(ConnectionClosed) as caught:
        while True:
            client.pump()
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code


def test_a_profile_lives_its_whole_life_beside_a_busy_one(serve: Serve) -> None:
    server = serve()
    owner, busy = server.connect(), server.connect()
    long = busy.call("session.create", profile="second")["session_id"]
    going = busy.submit(long, "/do stream 400 5")
    made = owner.call("profiles.create", name="third", soul="You are the third.", git_identity=False)
    assert made["name"] == "third"
    assert not made["confirm"]
    owner.until(lambda event: event["type"] == "profiles.changed")
    configured = owner.call("profiles.configure", profile="third", model="other-model")
    assert (configured["model"], configured["loaded"]) == ("other-model", 2)
    assert owner.call("config.get", profile="third", key="model.name")["value"] == "other-model"

    session = owner.call("session.create", profile="third", title="kept")["session_id"]
    watcher, by_path = server.connect(), bound(server, "third")
    watcher.call("thread.subscribe", session_id=session)
    running = owner.submit(session, "/do stream 4000 5")
    watcher.until(lambda event: event["type"] == "message.delta")
    renamed = owner.call("profiles.rename", profile="third", name="fourth", wait_s=0)
    assert (renamed["name"], renamed["id"]) == ("fourth", made["id"])
    assert watcher.finished(running["admission_id"])["outcome"] == "interrupted"
    watcher.until(lambda event: event["type"] == "session.closed" and event["session_id"] == session)
    watcher.until(lambda event: event["type"] == "profiles.changed")
    assert closed_with(by_path) == 4503
    assert names(owner) == ["default", "fourth", "second"]
    resumed = watcher.call("session.resume", session_id=session)
    assert resumed["position"] in ("ok", "fresh")
    again = watcher.submit(session, "/do say still here")
    ended = watcher.finished(again["admission_id"])
    assert ended["outcome"] == "completed", ended

    written = owner.call("profiles.export", profile="fourth", include=["config", "sessions"], passphrase=PASSPHRASE)
    assert written["sealed"]
    copy = owner.call("profiles.import", path=written["path"], name="fifth", passphrase=PASSPHRASE)
    assert copy["confirm"]
    assert copy["id"] != made["id"]
    assert owner.call("profiles.confirm", profile="fifth") == {"confirmed": True}
    assert owner.call("session.resume", profile="fifth", title="kept")["session_id"] != session

    owner.call("profiles.delete", profile="fourth", confirm="fourth", wait_s=0)
    with pytest.raises(Refused) as caught:
        owner.call("session.resume", session_id=session)
    assert caught.value.type == "session_unknown"
    assert names(owner) == ["default", "fifth", "second"]
    assert busy.finished(going["admission_id"])["outcome"] == "completed"


@pytest.mark.parametrize(
    ("method", "params", "type"),
    [
        ("profiles.create", {"name": "../evil"}, "invalid_params"),
        ("profiles.create", {"name": "default"}, "invalid_params"),
        ("profiles.create", {"name": "second"}, "already_exists"),
        ("profiles.clone", {"profile": "nobody", "name": "x"}, "profile_unknown"),
        ("profiles.rename", {"profile": "default", "name": "x"}, "permission_denied"),
        ("profiles.rename", {"profile": "second", "name": "root"}, "invalid_params"),
        ("profiles.delete", {"profile": "default", "confirm": "default"}, "permission_denied"),
        ("profiles.delete", {"profile": "second", "confirm": "first"}, "invalid_params"),
        ("profiles.export", {"profile": "second", "include": ["secrets"]}, "invalid_params"),
        ("profiles.import", {"path": "relative", "name": "x"}, "invalid_params"),
        ("profiles.import", {"path": "/nowhere/at/all", "name": "x"}, "not_found"),
        ("profiles.adopt", {"profile": "default"}, "permission_denied"),
    ],
)
def test_what_cannot_be_done_to_a_profile_is_refused(
    shared_server: Server, method: str, params: dict[str, Any], type: str
) -> None:
    client = shared_server.connect()
    with pytest.raises(Refused) as caught:
        client.call(method, **params)
    assert caught.value.type == type
    assert names(client) == ["default", "second"]
    client.close()
