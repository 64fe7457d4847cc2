"""When the door may open to other machines, and who is sent out again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.contract.registry import Right
from hermes_ws.server import door
from hermes_ws.server.entry import Principal
from hermes_ws.server.proxy import Proxies
from hermes_ws.server.serve import ServeOptions
from tests.server.certificates import certificate

PROXY = Proxies.parse(["10.0.0.2"])


@dataclass
class Followed:
    """The twin of a host: how many named tokens there are, and who wants to be told."""

    named: int = 0
    tell: list[Any] = field(default_factory=list)

    @property
    def credentials(self) -> Followed:
        return self

    def follow(self, tell: Any) -> None:
        self.tell.append(tell)


@dataclass
class Guest:
    """The twin of a connection."""

    id: str
    principal: Principal
    closed: int | None = None

    def close(self, code: int, reason: str = "") -> None:
        self.closed = code


@pytest.mark.parametrize(
    ("options", "proxies", "named", "says"),
    [
        (ServeOptions(host="0.0.0.0"), Proxies(), 1, "encrypted"),
        (ServeOptions(host="192.0.2.7"), Proxies(), 1, "encrypted"),
        (ServeOptions(host="::"), Proxies(), 1, "encrypted"),
        (ServeOptions(host="gate.example"), Proxies(), 1, "encrypted"),
        (ServeOptions(host="0.0.0.0", tls_cert=Path("c.pem")), Proxies(), 0, "token"),
        (ServeOptions(host="0.0.0.0"), PROXY, 0, "token"),
        (ServeOptions(host="0.0.0.0", tls_cert=Path("c.pem")), Proxies(), 1, None),
        (ServeOptions(host="0.0.0.0"), PROXY, 1, None),
        (ServeOptions(host="127.0.0.1"), Proxies(), 0, None),
        (ServeOptions(host="localhost"), Proxies(), 0, None),
        (ServeOptions(host="::1"), Proxies(), 0, None),
    ],
)
def test_other_machines_reach_it_encrypted_and_with_a_token_or_not_at_all(
    options: ServeOptions, proxies: Proxies, named: int, says: str | None
) -> None:
    """AUTH-08."""
    host: Any = Followed(named)
    if says is None:
        door.check_binding(options, host, proxies)
        return
    with pytest.raises(ProfileUnusable) as refused:
        door.check_binding(options, host, proxies)
    assert says in refused.value.message
    assert refused.value.hint


def test_a_certificate_is_read_at_the_start_and_a_key_alone_is_refused(tmp_path: Path) -> None:
    cert_file, key_file = certificate(tmp_path)
    assert door.secured(ServeOptions()) is None
    assert door.secured(ServeOptions(tls_cert=cert_file, tls_key=key_file)) is not None
    with pytest.raises(ProfileUnusable):
        door.secured(ServeOptions(tls_key=key_file))


def _guest(id: str, credential: str | None, *profiles: str) -> Guest:
    return Guest(id, Principal(id, frozenset(profiles) or None, frozenset(Right), None, credential))


def test_who_came_in_by_a_withdrawn_token_goes_and_the_others_stay() -> None:
    host: Any = Followed()
    guests: Any = [_guest("owner", None), _guest("desk", "tok-1"), _guest("other", "tok-2"), _guest("last", "tok-1")]
    door.keep_watch(host, lambda: guests)
    withdrawn, _ = host.tell
    withdrawn(frozenset({"tok-1"}), "last")
    assert [each.closed for each in guests] == [None, 4501, None, None]
    withdrawn(frozenset({"tok-1"}), None)
    assert guests[3].closed == 4501


def test_who_may_address_a_profile_under_a_name_that_is_gone_comes_in_anew() -> None:
    host: Any = Followed()
    guests: Any = [_guest("owner", None), _guest("desk", "tok-1", "work"), _guest("other", "tok-2", "home")]
    door.keep_watch(host, lambda: guests)
    _, changed = host.tell
    changed("work", gone=False)
    assert [each.closed for each in guests] == [None, None, None]
    changed("work", gone=True)
    assert [each.closed for each in guests] == [None, 4400, None]
