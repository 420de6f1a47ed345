"""An SMT-LIB command that misbehaves: ``fake_solver.py BEHAVIOUR [FILE]``. With FILE it answers once.

Without, it reads commands line by line and answers ``check-sat`` as it is told; ``sat`` comes with x = #x2a,
``count`` with as many as FILE has assertions, pushes and pops.
"""

import os
import re
import signal
import subprocess
import sys


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def sleep_for_ever() -> None:
    while True:
        signal.pause()


def check_sat(behaviour: str) -> None:
    if behaviour in ("sat", "unsat", "unknown", "maybe", "unsat (TIMEOUT)"):
        say(behaviour + "\n")
    elif behaviour == "hang":
        sleep_for_ever()
    elif behaviour == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sleep_for_ever()
    elif behaviour == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif behaviour == "flood":
        sys.stderr.write("warning\n" * 131_072)
        sys.stderr.flush()
        say("unsat\n")
    elif behaviour == "torrent":
        while True:
            say("sat " * 65_536)
    elif behaviour == "half":
        say("uns")
        sleep_for_ever()
    elif behaviour == "half and die":
        say("uns")
        sys.exit(0)
    elif behaviour == "silent":
        sys.exit(0)
    elif behaviour == "twice":
        say("sat\nunsat\n")
    elif behaviour == "afterthought":
        say("unsat\n")
    elif behaviour == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif behaviour == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif behaviour == "crash in a shell":
        sys.exit(128 + signal.SIGSEGV)
    elif behaviour == "offspring":
        subprocess.Popen(["sleep", "1000"])
        say("unsat\n")
    elif behaviour == "daemon":
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        say("unsat\n")
    elif behaviour == "latin":
        sys.stdout.buffer.write(b"s\xe4t\n")
        sys.stdout.flush()
    else:
        raise SystemExit(f"no behaviour {behaviour!r}")


def main() -> None:
    behaviour = sys.argv[1]
    if len(sys.argv) > 2:
        with open(sys.argv[2]) as file:
            script = file.read()
        assert "(check-sat)" in script
        if behaviour == "count":
            assertions = len(re.findall(r"\((?:assert|push|pop)\b", script))
            say(f"sat\n((define-fun x () (_ BitVec 8) #x{assertions:02x}))\n")
            return
        check_sat(behaviour)
        if behaviour == "sat":
            say("((define-fun x () (_ BitVec 8) #x2a))\n")
        return
    for line in sys.stdin:
        for command in re.findall(r"\(check-sat\)|\(get-value[^)]*\)\)|\(echo [^)]*\)", line):
            if command == "(check-sat)":
                check_sat(behaviour)
            elif command.startswith("(echo"):
                say(command[6:-1] + "\n" + ("unsat\n" if behaviour == "afterthought" else ""))
            else:
                say("((x #x2a))\n")


main()
