"""Large contents, rendered text, numbers, and the server itself."""

from __future__ import annotations

import base64
import hashlib
import os
import uuid

import pytest

from hermes_ws.methods.render import render
from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server, write_home
from tests.methods.conftest import BASE


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_an_upload_that_broke_off_goes_on_where_it_was(server: Server, client: Client) -> None:
    content = os.urandom(100_000)
    upload = {"upload": uuid.uuid4().hex, "size": len(content)}
    assert client.call("blob.put", offset=0, data=encoded(content[:60_000]), **upload)["received"] == 60_000
    client.cut()
    again = server.connect()
    asked = again.call("blob.put", offset=0, data="", **upload)
    assert asked["received"] == 60_000
    wrong = again.call("blob.put", offset=10, data=encoded(content[10:20]), **upload)
    assert (wrong["received"], wrong["blob"]) == (60_000, None)
    done = again.call("blob.put", offset=60_000, data=encoded(content[60_000:]), **upload)
    assert done["blob"] == hashlib.sha256(content).hexdigest()
    repeated = again.call("blob.put", offset=60_000, data=encoded(content[60_000:]), **upload)
    assert repeated["blob"] == done["blob"]
    piece = again.call("blob.get", blob=done["blob"], offset=99_990)
    assert base64.b64decode(piece["data"]) == content[99_990:]
    assert piece["next"] is None
    with pytest.raises(Refused) as refused:
        again.call("blob.get", blob=done["blob"], profile="second")
    assert refused.value.type == "not_found"
    again.close()


@pytest.mark.parametrize(
    ("changed", "type"),
    [
        ({"size": 65 * 1024 * 1024}, "too_large"),
        ({"data": "not base64!"}, "invalid_params"),
        ({"data": "AAAA", "size": 2}, "invalid_params"),
    ],
)
def test_what_cannot_be_a_piece_is_refused(client: Client, changed: dict[str, object], type: str) -> None:
    with pytest.raises(Refused) as refused:
        client.call("blob.put", **{"upload": "u", "offset": 0, "size": 10, "data": "", **changed})
    assert refused.value.type == type


def test_a_name_that_is_no_hash_leads_nowhere(client: Client) -> None:
    for name in ("../../../../etc/passwd", "0" * 63, "Z" * 64):
        with pytest.raises(Refused) as refused:
            client.call("blob.get", blob=name)
        assert refused.value.type == "invalid_params"
    with pytest.raises(Refused) as refused:
        client.call("blob.get", blob="0" * 64)
    assert refused.value.type == "not_found"


def test_markdown_becomes_html(client: Client) -> None:
    answer = client.call("render.markdown", text="# One\n\n- *two*\n\n| a |\n|---|\n| b |\n\n~~no~~")
    assert "<h1>One</h1>" in answer["html"]
    assert "<em>two</em>" in answer["html"]
    assert "<td>b</td>" in answer["html"]
    assert "<s>no</s>" in answer["html"]


def test_known_languages_are_marked_up_and_others_shown() -> None:
    rendered = render("```python\nprint('x')\n```\n\n```nonsense\n<b>\n```")
    assert '<span class="hl-' in rendered.html
    assert "&lt;b&gt;" in rendered.html
    for rules in (rendered.styles, rendered.dark_styles):
        assert ".hl-" in rules
        assert "pre {" not in rules, "the ground is the page's own"
    assert rendered.styles != rendered.dark_styles


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](data:text/html,x)",
        "![a](https://tracker.example/x.png)",
        "<iframe src=//x></iframe>",
        '<a href="x" onclick="y">z</a>',
        "```html\n</code></pre><script>x</script>\n```",
        '```"><script>\nx\n```',
        "<style>*{}</style>",
        '[x](https://a.example "\'><script>")',
    ],
)
def test_nothing_active_is_left_of_what_an_agent_wrote(text: str) -> None:
    html = render(text).html.lower()
    for part in ("<script", "<img", "<iframe", "<style", 'href="javascript', 'href="data'):
        assert part not in html
    for tag in html.split("<")[1:]:
        assert not any(f" {handler}=" in tag.split(">")[0] for handler in ("onerror", "onclick"))


def test_numbers_count_what_was_done(client: Client, session: str) -> None:
    before = client.call("insights.get", days=1)
    client.finished(client.submit(session, "count me")["admission_id"])
    after = client.call("insights.get", days=1)
    assert after["executions"] == before["executions"] + 1
    assert after["outcomes"]["completed"] == before["outcomes"].get("completed", 0) + 1
    assert after["messages"] == before["messages"] + 2
    assert after["output_tokens"] > before["output_tokens"]
    assert sum(day["executions"] for day in after["by_day"]) == after["executions"]
    assert client.call("insights.get", days=1, profile="second")["executions"] == 0


def test_the_server_tells_what_lives_in_it(server: Server, client: Client) -> None:
    told = client.call("runtime.statistics")
    assert told["connections"] >= 1
    assert told["requests"] >= 1
    assert told["guard_tripped"] == 0
    assert told["memory_bytes"] > 1_000_000
    assert "default" in {each["name"] for each in told["profiles"]}


def test_only_who_administers_the_server_sees_who_else_is_connected_and_the_instructions(server: Server) -> None:
    owner = server.connect()
    (server.homes / "second" / "SOUL.md").write_text("Be brief.\n")
    session = owner.call("session.create", profile="second")["session_id"]
    made = owner.call("token.create", name="narrow", profiles=["second"], rights=["observe", "control"])
    narrow = Client(server.url, made["token"])
    (own,) = narrow.call("runtime.statistics")["connected"]
    assert (own["principal"], own["transport"], own["subscriptions"]) == ("narrow", "websocket", [])
    assert narrow.call("profiles.describe", profile="second")["soul"] is None
    told = owner.call("runtime.statistics")["connected"]
    assert own in told
    following = [
        each
        for each in told
        if {"profile": "second", "session_id": session, "thread_id": "main"} in each["subscriptions"]
    ]
    assert len(following) == 1
    assert following[0]["since"] > 0
    assert owner.call("profiles.describe", profile="second")["soul"] == "Be brief."
    narrow.close()
    owner.close()


def test_a_server_that_is_told_to_drain_ends(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("drained")
    write_home(place / "homes" / "default", env={}, config="")
    server = Server(place / "homes", place / "server.log", BASE)
    client = server.connect()
    answer = client.call("runtime.drain", deadline_s=5)
    assert answer["draining"]
    client.until(lambda e: e["type"] == "gateway.draining")
    client.close()
    assert server.process.wait(30) == 0
    server.stop()
