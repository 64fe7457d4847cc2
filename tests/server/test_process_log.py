"""The log of the process: readable by programs, and without what profiles say."""

from __future__ import annotations

import io
import json
import logging

from hermes_ws.server.process_log import ProcessLog


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_program_gets_one_object_per_line() -> None:
    stream = io.StringIO()
    log = ProcessLog(stream)
    log.info("serving", port=1)
    log.warning("odd")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["port"]) == ("serving", "info", 1)
    assert second["level"] == "warning"


def test_a_person_gets_text() -> None:
    stream = Terminal()
    ProcessLog(stream).info("serving", port=1)
    assert "serving" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_an_incident_tells_where_and_not_what() -> None:
    stream = io.StringIO()
    try:
        raise ValueError("a value that somebody typed")
    except ValueError as bug:
        ProcessLog(stream).incident("abc", bug, method="config.get")
    line = json.loads(stream.getvalue())
    assert (line["incident"], line["kind"], line["method"]) == ("abc", "ValueError", "config.get")
    assert any("test_process_log.py" in each for each in line["stack"])
    assert "somebody typed" not in stream.getvalue()


def test_what_other_rooms_say_stands_in_it_too_without_what_a_failure_said() -> None:
    stream = io.StringIO()
    room = logging.getLogger("hermes_ws.somewhere.deep")
    with ProcessLog(stream).hearing():
        room.warning("no more than %d", 4)
        room.debug("this is nobody's business")
        try:
            raise ValueError("a value that somebody typed")
        except ValueError:
            room.exception("it ended")
    room.warning("nobody hears this here")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["room"]) == ("no more than 4", "warning", "somewhere.deep")
    assert (second["event"], second["level"], second["kind"]) == ("it ended", "error", "ValueError")
    assert any("test_process_log.py" in each for each in second["stack"])
    assert "somebody typed" not in stream.getvalue()
