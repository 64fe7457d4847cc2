"""Changing `config.yaml` without touching what a person wrote around it: comments, order and quotes stay.

The file is read as it is now, changed, checked as a whole, and put in place of the old one; a change that would make it
unusable is refused, and nothing is written. Edits of one home wait for each other, in this process and in others: of
two at a time one would be lost.
"""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from hermes_ws.contract.errors import InvalidParams, ProfileUnusable
from hermes_ws.scope import dotenv
from hermes_ws.scope.config import CONFIG_BYTES, ProfileConfig, parse_config
from hermes_ws.scope.config_merge import merged
from hermes_ws.scope.dotenv import ENV_BYTES
from hermes_ws.scope.private_file import read_regular, write_private

DEPTH: Final = 6
"""Parts of a key; the deepest setting has four."""

WIDTH: Final = 4096
"""Columns at which a written line is broken: never, since a person's own line would be broken with it."""


def set_setting(path: Path, key: str, value: JsonValue) -> None:
    """Set the setting `key` (`terminal.network`) to a value; null takes it out, so that its default holds.

    Reads and writes files: call it in a worker thread, as the home's owner. Raises `InvalidParams` for a change that
    would leave the file unusable, `ProfileUnusable` for one that is unusable already, OSError.
    """
    with _alone(path.parent):
        written, _ = _checked(path, key, value)
        write_private(path, written)


def preview(path: Path, key: str, value: JsonValue) -> ProfileConfig:
    """The settings as they would be after `set_setting`, which raises the same. Writes nothing."""
    return _checked(path, key, value)[1]


def _checked(path: Path, key: str, value: JsonValue) -> tuple[bytes, ProfileConfig]:
    data = read_regular(path, limit=CONFIG_BYTES) or b""
    parse_config(data, path)
    written = edited(data, key, value)
    if len(written) > CONFIG_BYTES:
        raise InvalidParams(f"{path} would be larger than {CONFIG_BYTES} bytes.", path="value")
    try:
        return written, parse_config(written, path)
    except ProfileUnusable as problem:
        told = cast("list[dict[str, str]]", problem.data.get("problems", []))
        reason = "; ".join(f"{each['key']}: {each['problem']}" if each["key"] else each["problem"] for each in told)
        places: list[JsonValue] = [{"path": _within(each["key"], key), "problem": each["problem"]} for each in told]
        place = _within(told[0]["key"], key) if told else "value"
        sentence = reason or problem.message
        message = f"The setting does not take that: {sentence}{'' if sentence.endswith(('.', '?')) else '.'}"
        raise InvalidParams(message, path=place, problems=places) from None


def _within(found: str, key: str) -> str:
    """Where in the value of the setting `key` a problem lies that was found at a place in the file."""
    return f"value{found[len(key) :]}" if found.startswith((f"{key}.", f"{key}[")) else "value"


def edited(data: bytes, key: str, value: JsonValue) -> bytes:
    """The content of the file with the setting changed. Raises `InvalidParams` for a key that leads through a value."""
    parts = key.split(".")
    if not all(parts) or len(parts) > DEPTH:
        raise InvalidParams("The key is no path of names with dots between.", path="key")
    yaml = _yaml()
    root = cast("CommentedMap | None", yaml.load(data.decode("utf-8-sig")))  # pyright: ignore[reportUnknownMemberType]
    if root is None:
        # Nothing but comments, which belong to no key: they stay, in front.
        head = data if not data or data.endswith(b"\n") else data + b"\n"
        return head + (b"" if value is None else _dumped(yaml, _nested(parts, merged(None, value))))
    node = cast("dict[str, Any]", root)
    for part in parts[:-1]:
        if node.get(part) is None:
            if value is None:
                return data
            node[part] = CommentedMap()
        inner = node[part]
        if not isinstance(inner, CommentedMap):
            raise InvalidParams(f"{part} holds a value and no further settings.", path="key")
        node = cast("dict[str, Any]", inner)
    if value is None:
        if parts[-1] not in node:
            return data
        del node[parts[-1]]
    else:
        node[parts[-1]] = merged(node.get(parts[-1]), value)
    return _dumped(yaml, root)


def add_rules(path: Path, rules: Sequence[Mapping[str, JsonValue]], before: Mapping[str, JsonValue] | None) -> None:
    """Put approval rules before the rule that is like `before`, else at the end; all else stays as it is.

    Reads and writes files: call it in a worker thread, as the home's owner. Raises as `set_setting` does.
    """
    with _alone(path.parent):
        data = read_regular(path, limit=CONFIG_BYTES) or b""
        config = parse_config(data, path)
        standing = [rule.model_dump(mode="json", exclude_none=True) for rule in config.approvals.rules]
        at = standing.index(dict(before)) if before is not None and dict(before) in standing else len(standing)
        yaml = _yaml()
        root = cast("CommentedMap | None", yaml.load(data.decode("utf-8-sig")))  # pyright: ignore[reportUnknownMemberType]
        if root is None or not isinstance(root.get("approvals"), CommentedMap) or not standing:  # pyright: ignore[reportUnknownMemberType]
            written, _ = _checked(path, "approvals.rules", [dict(rule) for rule in rules])
        else:
            listed = cast("list[JsonValue]", root["approvals"]["rules"])
            for offset, rule in enumerate(rules):
                listed.insert(at + offset, dict(rule))
            written = _dumped(yaml, root)
            parse_config(written, path)
        if len(written) > CONFIG_BYTES:
            raise InvalidParams(f"{path} would be larger than {CONFIG_BYTES} bytes.", path="value")
        write_private(path, written)


def set_secret(path: Path, name: str, value: str | None) -> None:
    """Write one secret into a `.env` file, or with None take it out; every other line stays as it is.

    Reads and writes files: call it in a worker thread, as the home's owner. Raises `InvalidParams` for a name or a
    value that no environment can hold, `ProfileUnusable` for a file that others can read, OSError.
    """
    with _alone(path.parent):
        data = read_regular(path, limit=ENV_BYTES, private=True) or b""
        try:
            text = dotenv.with_value(data.decode("utf-8", "surrogateescape"), name, value)
        except ValueError as problem:
            raise InvalidParams(f"{problem}.", path="name") from None
        written = text.encode("utf-8", "surrogateescape")
        if len(written) > ENV_BYTES:
            raise InvalidParams(f"{path} would be larger than {ENV_BYTES} bytes.", path="value")
        write_private(path, written)


@contextmanager
def _alone(home: Path) -> Generator[None]:
    """The one who edits files of this home now; the kernel lets go when the descriptor is closed."""
    fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _nested(parts: list[str], value: object) -> CommentedMap:
    made = CommentedMap()
    made[parts[0]] = value if len(parts) == 1 else _nested(parts[1:], value)
    return made


def _yaml() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)  # pyright: ignore[reportUnknownMemberType]
    return yaml


def _dumped(yaml: YAML, root: CommentedMap) -> bytes:
    out = io.BytesIO()
    yaml.dump(root, out)  # pyright: ignore[reportUnknownMemberType]
    return out.getvalue() if root else b""
