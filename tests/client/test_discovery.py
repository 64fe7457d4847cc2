"""Finding the server of a home, and trusting it or not."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_ws.client.discovery import Endpoint, Reason, Unavailable, discover, remote


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """The `run` directory of a served home, as its server leaves it."""
    made = tmp_path / "run"
    made.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(made / "gateway.sock"))
        (made / "gateway.sock").chmod(0o600)
        (made / "token").write_text("secret-token\n")
        (made / "token").chmod(0o600)
        yield made


def refused(home: Path) -> Unavailable:
    found = discover(home)
    assert isinstance(found, Unavailable)
    return found


def test_a_served_home_is_found_with_its_token(run: Path) -> None:
    found = discover(run.parent)
    assert isinstance(found, Endpoint)
    assert (found.socket, found.token) == (run / "gateway.sock", "secret-token")
    assert "secret-token" not in repr(found) + str(found)


@pytest.mark.parametrize("missing", ["gateway.sock", "token"])
def test_what_is_not_there_is_absent(run: Path, missing: str) -> None:
    (run / missing).unlink()
    assert refused(run.parent).reason is Reason.ABSENT


def test_a_home_that_does_not_exist_is_absent(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").reason is Reason.ABSENT


@pytest.mark.parametrize("name", ["gateway.sock", "token"])
def test_what_others_may_open_is_not_used(run: Path, name: str) -> None:
    (run / name).chmod(0o660)
    found = refused(run.parent)
    assert found.reason is Reason.INACCESSIBLE
    assert "chmod 600" in found.detail


def test_a_link_or_another_kind_of_file_is_not_used(run: Path) -> None:
    (run / "token").rename(run / "elsewhere")
    (run / "token").symlink_to(run / "elsewhere")
    assert refused(run.parent).reason is Reason.INACCESSIBLE
    (run / "gateway.sock").unlink()
    (run / "gateway.sock").write_text("")
    assert "no socket" in refused(run.parent).detail


def test_a_file_of_another_user_is_not_used(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_ws.client.discovery.os.geteuid", lambda: os.getuid() + 1)
    assert "another user" in refused(run.parent).detail


@pytest.mark.parametrize("content", ["", "\n", "two words", "\x00", "ü"])
def test_a_file_without_a_token_is_not_used(run: Path, content: str) -> None:
    (run / "token").write_text(content)
    assert refused(run.parent).reason is Reason.INACCESSIBLE


def test_a_url_without_a_path_means_the_gateway() -> None:
    assert remote("wss://example.org", "t").url == "wss://example.org/ws"
    assert remote("wss://example.org/p/work/ws", "t").url == "wss://example.org/p/work/ws"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "https://example.org/ws",
        "ws://",
        "ws://me:pass@host/ws",
        "ws://h/ws?token=t",
        "ws://h/#t",
        "ws://h:99999/",
    ],
)
def test_a_url_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        remote(url, "t")


def test_what_stays_on_the_machine_is_known_as_such() -> None:
    assert remote("ws://127.0.0.1:8787/ws", "").local
    assert remote("ws://[::1]:8787/ws", "").local
    assert not remote("wss://example.org/ws", "").local
