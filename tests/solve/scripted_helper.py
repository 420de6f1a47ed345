"""A helper process that does what it is told: ``python scripted_helper.py FD BEHAVIOUR... / BEHAVIOUR...``.

One behaviour per request, the last one for all further requests; behind the slash those for verification,
which without one finds every model right. It speaks frames by hand, so that it can speak them wrongly.
"""

import json
import os
import re
import signal
import socket
import struct
import sys


def _read(channel: socket.socket) -> dict:
    size = struct.unpack("!I", _exactly(channel, 4))[0]
    return json.loads(_exactly(channel, size))


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = channel.recv(size - len(data))
        if not chunk:
            sys.exit(0)
        data += chunk
    return data


def _reply(request: dict, status: str, **members: object) -> bytes:
    reply = {
        "attempt_id": request["attempt_id"],
        "status": status,
        "model": {name: _value(sort) for name, sort, _ in request["symbols"]} if status == "sat" else None,
        "reason": None if status in ("sat", "unsat") else f"scripted {status}",
        "elapsed_ms": 0.1,
        "kept_levels": 0,
        "held_levels": 0,
        "rss_bytes": 1 << 20,
        **members,
    }
    body = json.dumps(reply).encode()
    return struct.pack("!I", len(body)) + body


def _value(sort: str) -> str:
    """42 of a byte, and zero of other bit-vectors."""
    width = re.fullmatch(r"\(_ BitVec ([0-9]+)\)", sort)
    return "#x2a" if width is None or width[1] == "8" else "#b" + "0" * int(width[1])


def _sleep_for_ever() -> None:
    while True:
        signal.pause()


def _obey(channel: socket.socket, request: dict, behaviour: str) -> None:
    if behaviour in ("sat", "unsat", "unknown", "error"):
        channel.sendall(_reply(request, behaviour))
    elif behaviour == "bare":
        channel.sendall(_reply(request, "sat", model={}))
    elif behaviour == "stacked":
        kept = request["kept"]
        channel.sendall(_reply(request, "unsat", kept_levels=kept, held_levels=kept + len(request["levels"])))
    elif behaviour == "hang":
        _sleep_for_ever()
    elif behaviour == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif behaviour == "half":
        frame = _reply(request, "sat")
        channel.sendall(frame[: len(frame) // 2])
        _sleep_for_ever()
    elif behaviour == "twice":
        channel.sendall(_reply(request, "unsat") * 2)
    elif behaviour == "other":
        channel.sendall(_reply(request, "unsat", attempt_id="somebody-else's"))
    elif behaviour == "garbage":
        channel.sendall(struct.pack("!I", 4) + b"\xff\xfe{}")
    elif behaviour == "oversize":
        channel.sendall(struct.pack("!I", 0xFFFFFFF0))
        _sleep_for_ever()
    elif behaviour == "flood":
        sys.stderr.write("noise\n" * 400_000)
        sys.stderr.flush()
        channel.sendall(_reply(request, "unsat"))
    elif behaviour == "fat":
        channel.sendall(_reply(request, "unsat", rss_bytes=1 << 40))
    elif behaviour == "die":
        sys.stderr.write("assertion failed in the engine\n")
        sys.stderr.flush()
        os._exit(3)
    else:
        raise SystemExit(f"no behaviour {behaviour!r}")


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    solving, _, checking = " ".join(sys.argv[2:]).partition("/")
    scripts = {"solve": solving.split(), "check": checking.split() or ["sat"]}
    if scripts["solve"] == ["deaf"]:  # reads nothing at all
        _sleep_for_ever()
    while True:
        request = _read(channel)
        script = scripts[request["op"]]
        _obey(channel, request, script.pop(0) if len(script) > 1 else script[0])


main()
