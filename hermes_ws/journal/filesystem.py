"""On which kind of file system a home lies. SQLite's write-ahead log needs shared memory and locks that really lock."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hermes_ws.contract.errors import ProfileUnusable

NETWORK: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x6969: "NFS",
        0x517B: "SMB",
        0xFE534D42: "SMB",
        0xFF534D42: "CIFS",
        0x5346414F: "AFS",
        0x6B414653: "AFS",
        0x73757245: "Coda",
        0x00C36400: "Ceph",
        0x01021997: "9P",
        0x0BD00BD0: "Lustre",
        0x47504653: "GPFS",
        0x01161970: "GFS2",
        0x7461636F: "OCFS2",
        0x19830326: "BeeGFS",
    }
)
"""File systems that other machines write to as well: the magic numbers of statfs(2). FUSE is not among them, since
most of what comes through it is local."""

_STATFS_BYTES: Final = 256
"""Room for `struct statfs`, which is 120 bytes on 64-bit Linux; its first word is the magic number."""


def magic(path: Path) -> int:
    """The magic number of the file system that holds `path`. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if libc.statfs(bytes(path), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"statfs failed with error {number}", str(path))
    return ctypes.c_ulong.from_buffer(buffer).value & 0xFFFFFFFF


def refuse_network(directory: Path, allowed: Collection[str] = (), *, magic_of: Callable[[Path], int] = magic) -> None:
    """Raise `ProfileUnusable` if `directory` lies on a network file system whose name is not `allowed`."""
    kind = NETWORK.get(magic_of(directory))
    if kind is not None and kind not in allowed:
        raise ProfileUnusable(
            f"{directory} lies on a network file system ({kind}), where a database can be damaged.",
            hint="Keep the homes on a local disk. If only one machine ever opens this home, and its locks hold, write"
            f" `network_file_systems: [{kind}]` into its config.yaml.",
        )
