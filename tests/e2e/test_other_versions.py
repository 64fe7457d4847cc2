"""Older and newer clients, as they were or will be: each is a file of what it sends and what it must be told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.e2e.gateway_client import PATIENCE
from tests.e2e.process import Server

CLIENTS = sorted((Path(__file__).parent / "clients").glob("*.json"))

EARLIER = Path(__file__).parent / "clients" / "an-earlier-command-line.json"


def fits(pattern: Any, value: Any) -> bool:
    """Whether `value` has all that `pattern` says. Lists are as long as they are."""
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(key in value and fits(each, value[key]) for key, each in pattern.items())
    if isinstance(pattern, list):
        return isinstance(value, list) and len(pattern) == len(value) and all(map(fits, pattern, value))
    return bool(pattern == value)


class Player:
    """Plays the steps of one client."""

    def __init__(self, server: Server) -> None:
        headers = {"Authorization": f"Bearer {server.token}"}
        self.socket = connect(server.url, additional_headers=headers, compression=None, proxy=None, legacy=True)
        self.seen: list[Any] = []
        self.arrays = 0
        self._names: dict[str, Any] = {}
        self._unread: list[Any] = []

    def play(self, step: dict[str, Any]) -> None:
        if "send" in step:
            text = json.dumps(step["send"])
            for name, value in self._names.items():
                text = text.replace(f'"${name}"', json.dumps(value))
            self.socket.send(text)
        elif "closed" in step:
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    self._next()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == step["closed"]
        else:
            frame = self._next()
            while not fits(step["expect"], frame):
                frame = self._next()
            for name, path in step.get("keep", {}).items():
                value = frame
                for key in path:
                    value = value[key]
                self._names[name] = value

    def _next(self) -> Any:
        if not self._unread:
            message = json.loads(self.socket.recv(timeout=PATIENCE))
            if isinstance(message, list):
                self.arrays += 1
            self._unread = message if isinstance(message, list) else [message]
        frame = self._unread.pop(0)
        self.seen.append(frame)
        return frame


@pytest.mark.parametrize("file", CLIENTS, ids=lambda file: file.stem)
def test_a_client_of_another_time_is_understood_or_told_why_not(shared_server: Server, file: Path) -> None:
    """Cases SKEW-01 (never-spoken), SKEW-03 (asks-little), SKEW-05 (an-older-major, another-major), ASK-05."""
    told = json.loads(file.read_text("utf-8"))
    player = Player(shared_server)
    try:
        for step in told["steps"]:
            player.play(step)
    finally:
        player.socket.close()
    assert fits({"method": "event", "params": {"type": "gateway.ready"}}, player.seen[0]), "readiness comes first"
    for pattern in told["never"]:
        assert [frame for frame in player.seen if fits(pattern, frame)] == []
    assert (player.arrays > 0) == told.get("batch", False)


def test_the_earlier_command_line_had_its_effect_where_the_profile_works(
    serve: Callable[..., Server], record_property: Callable[[str, object], None]
) -> None:
    """It said no directory, so none of a caller's is verified: the profile's own is."""
    server = serve()
    test_a_client_of_another_time_is_understood_or_told_why_not(server, EARLIER)
    receipt = server.homes / "default" / "home" / "receipt-of-an-earlier-client"
    assert receipt.read_text() == f"{receipt.parent}\n"
    record_property("caller_cwd_effect_verified", False)
