"""What is told of a setting stands below it in the source, and nothing is set that nobody tells of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from hermes_ws.scope.config import ProfileConfig
from hermes_ws.scope.sections import Section
from hermes_ws.scope.setting_docs import setting_docs


def below(section: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield section
    for each in section.__subclasses__():
        yield from below(each)


SECTIONS = sorted(set(below(Section)) - {Section}, key=lambda section: section.__name__)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_told_of(section: type[BaseModel]) -> None:
    told = setting_docs(section)
    kinds = {name: field.annotation for name, field in section.model_fields.items()}
    sections = {name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Section)}
    assert told.keys() | sections == section.model_fields.keys(), "a section tells of itself"
    assert all(text and text == text.strip() for text in told.values())
    shape = section.model_json_schema()["properties"]
    assert {name: each["description"] for name, each in shape.items() if name in told} == told


def test_a_section_tells_what_it_has_from_another() -> None:
    class Base(Section):
        """One."""

        first: int = 1
        """Of the base."""

    class Further(Base):
        """Another."""

        second: int = 2
        """Of its own,
        over two lines."""

    assert setting_docs(Further) == {"first": "Of the base.", "second": "Of its own,\nover two lines."}


def test_the_settings_are_sections() -> None:
    assert issubclass(ProfileConfig, Section)
