"""The shapes that a form for the settings is made from."""

from __future__ import annotations

import json
from typing import Any, cast

from hermes_ws.scope.config import ProfileConfig
from hermes_ws.scope.config_shape import shapes


def setting(section: str, key: str) -> dict[str, Any]:
    properties = cast("dict[str, dict[str, Any]]", shapes()[section]["properties"])
    return properties[key]


def test_every_section_has_a_shape_that_stands_by_itself() -> None:
    found = shapes()
    assert found.keys() == ProfileConfig.model_fields.keys()
    assert "$ref" not in json.dumps(found)


def test_titles_are_left_out_and_settings_of_that_name_are_not() -> None:
    assert "title" not in setting("questions", "deadline_s")
    written = json.dumps(shapes())
    assert '"title": "' not in written


def test_a_shape_says_what_a_setting_takes() -> None:
    assert setting("limits", "frame_bytes")["maximum"] == 16_777_216
    assert setting("model", "provider")["default"] == "loopback"
    assert setting("approvals", "mode")["enum"] == ["ask", "auto", "deny"]
