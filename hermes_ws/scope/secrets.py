"""A profile's secrets: one is revealed when it is asked for by name, and in no other way.

They are never part of the process environment, cannot be printed, logged, copied or pickled, and expand only where a
setting is declared to hold a secret (case SCOPE-02: from the profile's own, never from another's).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn, final

from hermes_ws.contract.errors import NotFound, ProfileUnusable
from hermes_ws.scope.redaction import Patterns, Redactor

_REFERENCE = re.compile(r"\$\$|\$\{([^}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@final
class Secrets:
    """The secrets of one profile, as loaded at one moment.

    `plain` are the names that redaction leaves readable; `hidden` are further values that it covers, for example a key
    that was written into config.yaml, by the name that is shown instead.
    """

    __slots__ = ("_hidden", "_patterns", "_plain", "_values")

    def __init__(
        self,
        values: Mapping[str, str],
        *,
        plain: frozenset[str] = frozenset(),
        hidden: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._values: Mapping[str, str] = MappingProxyType(dict(values))
        self._plain = plain
        self._hidden = hidden
        self._patterns = Patterns.of({**hidden, **values}, plain=plain)

    def filled_in(self, values: Mapping[str, str]) -> Secrets:
        """These secrets, and of `values` those that are not among them."""
        return Secrets({**values, **self._values}, plain=self._plain, hidden=self._hidden)

    def hiding(self, hidden: Mapping[str, str]) -> Secrets:
        """These secrets, covering further values by the names that are shown instead."""
        return Secrets(self._values, plain=self._plain, hidden={**self._hidden, **hidden})

    def names(self) -> frozenset[str]:
        """What there is, without what it is."""
        return frozenset(self._values)

    def get(self, name: str) -> str | None:
        """The secret of this name, or None."""
        return self._values.get(name)

    def reveal(self, name: str) -> str:
        """The secret of this name. Raises NotFound, which says where to put it."""
        try:
            return self._values[name]
        except KeyError:
            raise NotFound(
                f"This profile has no secret {name}.", hint=f"Add a line {name}=… to the profile's .env.", secret=name
            ) from None

    def expand(self, text: str, *, where: str) -> str:
        """Replace `${NAME}` by the secret and `$$` by a dollar; any other dollar stays.

        `where` is the key of the setting. Raises ProfileUnusable, which names it, for a name that is missing and for a
        reference that is malformed: what is half expanded is never used (case PARSE-05).
        """

        def value(found: re.Match[str]) -> str:
            if found.group() == "$$":
                return "$"
            name, closed = found.group(1), found.group(2)
            if not closed or _NAME.fullmatch(name) is None:
                raise ProfileUnusable(
                    f"config.yaml: {where} holds a reference that cannot be read.",
                    hint="Write ${NAME} for the secret NAME of this profile's .env, and $$ for a dollar.",
                    key=where,
                )
            if name not in self._values:
                raise ProfileUnusable(
                    f"config.yaml: {where} refers to ${{{name}}}, and this profile's .env does not define {name}.",
                    hint=f"Add a line {name}=… to the profile's .env.",
                    key=where,
                    secret=name,
                )
            return self._values[name]

        return _REFERENCE.sub(value, text)

    def redact(self, text: str) -> str:
        """`text` with every secret replaced by its name."""
        return self._patterns.redact(text)

    def redactor(self) -> Redactor:
        """A redactor for one text that comes in pieces."""
        return Redactor(self._patterns)

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)} names)"

    def __iter__(self) -> NoReturn:
        raise TypeError("secrets are not listed: ask for one by name with reveal()")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("secrets are neither copied nor pickled: hand the scope on instead")
