"""What is plainly no secret, and so may stay readable: numbers, hosts, paths, addresses, ordinary words.

Settings lie beside keys in a `.env`; replacing `localhost` in every text would make them unreadable. When in doubt a
value counts as a secret: a part that looks random makes the whole of it one (a hook's address carries its key in the
path, and a base64 key may begin with a slash).
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

WORD_LENGTH: Final = 16
"""From here on, even lower-case letters are taken for a passphrase."""

RANDOM_LENGTH: Final = 12
"""A run of letters and digits this long, of more than one kind, is taken for random; versions and dates are shorter."""

PART_LENGTH: Final = 32
"""No directory or host is called something longer than this; a key is."""

_NUMBER = re.compile(r"[+-]?[0-9][0-9_,]*(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_BOOLEAN = re.compile(r"true|false|yes|no|on|off|enabled|disabled", re.IGNORECASE | re.ASCII)
_WORD = re.compile(rf"[a-z_-]{{1,{WORD_LENGTH - 1}}}", re.ASCII)
_HOST = re.compile(
    r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,24}|[0-9]{1,3}(\.[0-9]{1,3}){3})(:[0-9]{1,5})?", re.ASCII
)
_PATH = re.compile(r"(~|\.{1,2})?/[A-Za-z0-9._@ /-]*", re.ASCII)
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,15}://[A-Za-z0-9.:/_~\[\]-]+", re.ASCII)
_RUN = re.compile(r"[A-Za-z0-9]+", re.ASCII)
_KINDS = (re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"[0-9]"))


def plainly_no_secret(value: str) -> bool:
    """Whether a value may be shown although it stands among secrets."""
    if any(pattern.fullmatch(value) for pattern in (_NUMBER, _BOOLEAN, _WORD)):
        return True
    if _HOST.fullmatch(value):
        return not _random(value)
    if all(_PATH.fullmatch(part) for part in value.split(":")):
        return not _random(value)
    return _is_plain_url(value) and not _random(value)


def _is_plain_url(value: str) -> bool:
    if _URL.fullmatch(value) is None:
        return False
    try:
        parts = urlsplit(value)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _random(value: str) -> bool:
    """Whether some part of a host, path or address looks like a key."""
    for run in _RUN.findall(value):
        kinds = sum(kind.search(run) is not None for kind in _KINDS)
        if len(run) > PART_LENGTH or (len(run) >= RANDOM_LENGTH and kinds > 1):
            return True
    return False
