"""The messages between the service and its fork server, one datagram each over a SOCK_SEQPACKET pair.

* service to server: ``SPAWN`` with two descriptors, the helper's end of the channel and of the error pipe;
* server to service: ``SPAWNED pid`` with the pidfd, or ``SPAWNED 0 errno``, one per ``SPAWN``, in order;
  ``EXITED pid status`` once the helper *and everything it started* is dead and reaped.
"""

from __future__ import annotations

import array
import socket
import struct
from collections.abc import Sequence
from enum import IntEnum

__all__ = ["Word", "receive", "send"]


class Word(IntEnum):
    SPAWN = 1
    SPAWNED = 2
    EXITED = 3


_LAYOUT = struct.Struct("!Bqi")
_MOST_FDS = 2


def send(control: socket.socket, word: Word, pid: int = 0, value: int = 0, fds: Sequence[int] = ()) -> None:
    """One datagram. Raises ``OSError``."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    control.sendmsg([_LAYOUT.pack(word, pid, value)], rights, socket.MSG_NOSIGNAL)


def receive(control: socket.socket) -> tuple[Word, int, int, list[int]] | None:
    """One datagram, its descriptors close-on-exec; None at the end. Raises ``OSError``.

    (``socket.recv_fds`` ignores its flags on Python 3.11, so descriptors would leak into every child.)
    """
    space = socket.CMSG_SPACE(_MOST_FDS * array.array("i").itemsize)
    datagram, ancillary, _, _ = control.recvmsg(_LAYOUT.size, space, socket.MSG_CMSG_CLOEXEC)
    if not datagram:
        return None
    fds = array.array("i")
    for _, _, data in ancillary:
        fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    word, pid, value = _LAYOUT.unpack(datagram)
    return Word(word), pid, value, list(fds)
