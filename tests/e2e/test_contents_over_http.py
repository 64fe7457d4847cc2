"""A large content, saved over plain HTTP: whole, by those who may, and shown by no browser."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
from urllib.parse import urlsplit

from tests.e2e.process import Server

SIZE = 1_300_000
"""More than two pieces of `blob.get`."""


def fetch(server: Server, path: str, token: str | None) -> tuple[int, dict[str, str], bytes]:
    address = urlsplit(server.url).netloc
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def put(server: Server, content: bytes, profile: str) -> str:
    client = server.connect()
    offset, step, told = 0, 500_000, {}
    while offset < len(content):
        data = base64.b64encode(content[offset : offset + step]).decode()
        told = client.call("blob.put", profile=profile, upload="u", offset=offset, size=len(content), data=data)
        offset = told["received"]
    client.close()
    return str(told["blob"])


def test_a_content_is_an_attachment_that_no_browser_shows(shared_server: Server) -> None:
    content = os.urandom(SIZE)
    hash = put(shared_server, content, "default")
    assert hash == hashlib.sha256(content).hexdigest()
    status, headers, body = fetch(shared_server, f"/blob/{hash}", shared_server.token)
    assert (status, body == content) == (200, True)
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("sandbox")
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-length"] == str(SIZE)
    assert not any(name.startswith("access-control") for name in headers)


def test_a_content_is_for_those_who_may_and_of_its_own_profile(shared_server: Server) -> None:
    hash = put(shared_server, b"of the second profile", "second")
    assert fetch(shared_server, f"/blob/{hash}", None)[0] == 401
    assert fetch(shared_server, f"/blob/{hash}", shared_server.token)[0] == 404
    assert fetch(shared_server, f"/p/second/blob/{hash}", shared_server.token)[2] == b"of the second profile"
    client = shared_server.connect()
    narrow = client.call("token.create", name="narrow", profiles=["default"], rights=["observe"])["token"]
    blind = client.call("token.create", name="blind", profiles=["second"], rights=["submit"])["token"]
    client.close()
    assert fetch(shared_server, f"/p/second/blob/{hash}", narrow)[0] == 404
    assert fetch(shared_server, f"/p/second/blob/{hash}", blind)[0] == 403
    assert fetch(shared_server, f"/p/second/blob/{'0' * 64}", shared_server.token)[0] == 404
