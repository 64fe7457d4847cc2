"""Which file operation an order asks for, and where it may work when no kernel rule says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hermes_ws.warden import files, orders, tree
from hermes_ws.warden.confine import Confined, Wishes


def operation(
    order: Mapping[str, object], given: Sequence[int], wishes: Wishes, confined: Confined
) -> Callable[[], None]:
    """The work of a child that is forked for it; raises `orders.Malformed`."""
    work = _operation(order, given, wishes, confined)
    granted = confined.visible(wishes)
    return work if granted is None else files.refusing(orders.text(order, "path"), granted, work, given[0])


def _operation(
    order: Mapping[str, object], given: Sequence[int], wishes: Wishes, confined: Confined
) -> Callable[[], None]:
    kind = orders.text(order, "op")
    path = orders.text(order, "path")
    answer = given[0]
    if kind == orders.WRITE:
        return files.write(path, given[1], answer, confined.writable(wishes))
    places = confined.readable(wishes)
    if kind == orders.LIST:
        asked = tree.Listing(
            depth=orders.integer(order, "depth", low=1, high=tree.DEPTH),
            limit=orders.integer(order, "limit", high=tree.ENTRIES),
            hidden=orders.flag(order, "hidden"),
            pattern=orders.maybe_text(order, "pattern"),
        )
        return tree.listing(path, asked, answer, places)
    if kind == orders.SEARCH:
        wanted = tree.Search(
            expression=orders.text(order, "expression"),
            literal=orders.flag(order, "literal"),
            ignore_case=orders.flag(order, "ignore_case"),
            pattern=orders.maybe_text(order, "pattern"),
            limit=orders.integer(order, "limit", high=tree.ENTRIES),
        )
        return tree.search(path, wanted, answer, places)
    offset, limit = orders.integer(order, "offset"), orders.integer(order, "limit")
    return files.read(path, offset, limit, answer, places)
