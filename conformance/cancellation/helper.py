"""Helpers that answer when they are told: ``python helper.py FD`` forks one for every packet.

A packet carries three descriptors: the helper's end of its channel, of its error pipe, and of a socket for
commands. A helper reads a request as a real one does, then obeys commands until it has replied: ``answer``
(which is sat), ``unsat``, ``unknown`` and ``error`` are replies, ``noise`` is a line on its error pipe.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
from typing import Any


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = channel.recv(size - len(data))
        if not chunk:
            os._exit(0)
        data += chunk
    return data


def _reply(request: dict[str, Any], status: str) -> bytes:
    reply = {
        "attempt_id": request["attempt_id"],
        "status": status,
        "model": {symbol[0]: "#x01" for symbol in request["symbols"]} if status == "sat" else None,
        "core": None,
        "reason": None if status in ("sat", "unsat") else "told to",
        "elapsed_ms": 0.1,
        "kept_levels": 0,
        "held_levels": 0,
        "rss_bytes": 1 << 20,
    }
    body = json.dumps(reply).encode()
    return struct.pack("!I", len(body)) + body


def _live(channel: socket.socket, errors: int, commands: socket.socket) -> None:
    while True:
        request = json.loads(_exactly(channel, struct.unpack("!I", _exactly(channel, 4))[0]))
        while (command := commands.recv(64).decode()) == "noise":
            os.write(errors, b"noise\n")
        if not command:
            return
        channel.sendall(_reply(request, "sat" if command == "answer" else command))


def main(link: socket.socket) -> None:
    """Fork helpers until the other side hangs up."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    while True:
        packet, fds, _, _ = socket.recv_fds(link, 64, 3)
        if not packet:
            return
        pid = os.fork()
        if pid == 0:
            link.close()
            os.setsid()
            try:
                _live(socket.socket(fileno=fds[0]), fds[1], socket.socket(fileno=fds[2]))
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)
        link.send(str(pid).encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
