"""Putting a new value where an old one stands in a YAML file: what is the same in both is not touched.

So the comments inside a list or a mapping stay when one entry of it changes, and a secret that was shown masked and
comes back masked stays what it is.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import JsonValue
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from hermes_ws.contract.errors import InvalidParams
from hermes_ws.scope.config_view import MASK


def merged(old: object, new: JsonValue) -> object:
    """What to write in place of `old`, which may be changed and given back.

    Raises `InvalidParams` for a mask where nothing stands that it could stand for.
    """
    if new == MASK:
        if not isinstance(old, str):
            raise InvalidParams(
                f"{MASK} stands for a value that is not shown, and here there is none.",
                hint="Write a reference such as ${NAME}, and NAME as a secret.",
                path="value",
            )
        return old
    if _same(old, new):
        return old
    if isinstance(new, dict):
        return _mapping(old if isinstance(old, CommentedMap) else CommentedMap(), new)
    if isinstance(new, list):
        return _sequence(old if isinstance(old, CommentedSeq) and not _shared(old) else CommentedSeq(), new)
    return new


def _mapping(old: CommentedMap, new: dict[str, JsonValue]) -> CommentedMap:
    before = cast("dict[str, Any]", old)
    made = CommentedMap() if _shared(old) else old
    node = cast("dict[str, Any]", made)
    for key in [key for key in node if key not in new]:
        del node[key]
    for key, value in new.items():
        node[key] = merged(before.get(key), value)
    return made


def _shared(node: CommentedMap | CommentedSeq) -> bool:
    """Whether it has a name, or takes over what has one: changed in place, it would change elsewhere too."""
    named = cast("object", node.yaml_anchor())  # pyright: ignore[reportUnknownMemberType]
    return bool(named) or bool(getattr(node, "merge", None))


def _sequence(old: CommentedSeq, new: list[JsonValue]) -> CommentedSeq:
    """What is equal at the beginning and at the end stays; between, entries of the same place are merged."""
    node = cast("list[Any]", old)
    shorter = min(len(node), len(new))
    head = next((at for at in range(shorter) if not _same(node[at], new[at])), shorter)
    tail = next((at for at in range(shorter - head) if not _same(node[-1 - at], new[-1 - at])), shorter - head)
    between = new[head : len(new) - tail]
    while len(node) - head - tail > len(between):
        del node[len(node) - tail - 1]
    for offset, value in enumerate(between):
        at = head + offset
        if at < len(node) - tail:
            node[at] = merged(node[at], value)
        else:
            node.insert(at, merged(None, value))
    return old


def _same(old: object, new: object) -> bool:
    """Equal also in kind: for YAML `true` and `1` are two things."""
    if isinstance(old, dict) and isinstance(new, dict):
        one, two = cast("dict[object, object]", old), cast("dict[object, object]", new)
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if isinstance(old, list) and isinstance(new, list):
        first, second = cast("list[object]", old), cast("list[object]", new)
        return len(first) == len(second) and all(_same(a, b) for a, b in zip(first, second, strict=True))
    return isinstance(old, bool) == isinstance(new, bool) and old == new
