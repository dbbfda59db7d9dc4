"""Runs a hook of `deploy/hooks`, and kills the hook at a numbered point: immediately before or after an external
effect. With ONLY_STOPPED the hook is stopped there, and continues at SIGCONT. If the hook has fewer points, the exit
status is the hook's.

killed.py POINT PROGRAM NAME: POINT is a number from 1 on, or a part of the name of a point. When the hook is killed,
the last line on standard output is `killed POINT: WHAT`.
"""

import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path

# Statements without an effect on a server or the machine.
LOOKS = re.compile(r"\s*(SELECT|SHOW)\b", re.IGNORECASE)
ACTS = re.compile(
    r"pg_promote|pg_terminate|pg_cancel|pg_reload_conf|pg_logical_emit|pg_wal_replay|pg_switch_wal|_slot\(|GET_LOCK|"
    r"\b(SET|KILL|STOP|START|RESET|CHANGE|ALTER|CREATE|DROP|GRANT|BEGIN|FLUSH|PAUSE|RESUME|RELOAD|DISABLE|ENABLE)\b"
)
REDIS_LOOKS = {"INFO", "ROLE", "PING", "AUTH", "HELLO", "CLIENT LIST", "CLIENT INFO", "CONFIG GET", "ACL WHOAMI",
               "ACL DRYRUN", "ACL GETUSER", "SENTINEL MASTER", "SENTINEL MASTERS", "SENTINEL REPLICAS",
               "SENTINEL SENTINELS", "SENTINEL GET-MASTER-ADDR-BY-NAME", "SENTINEL CKQUORUM", "WAIT", "TIME",
               "REPLCONF"}  # fmt: skip
ETCD_LOOKS = ("maintenance/status", "kv/range", "cluster/member/list")
FILES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.kill",
         "shutil.rmtree", "shutil.move", "shutil.copyfile"}  # fmt: skip

left = 0
number = wanted = ""


def point(what):
    global left, wanted
    left -= 1
    if left == 0 or (wanted and wanted in what):
        os.write(1, f"killed {number}: {what}\n".encode())
        wanted = ""
        # The whole process group, as the supervisor does.
        os.killpg(0, signal.SIGSTOP if "ONLY_STOPPED" in os.environ else signal.SIGKILL)


def audited(event, arguments):
    if event in FILES:
        point(f"before {event} {arguments[0]}")
    elif event == "open":
        path, _, flags = arguments
        writes = (flags or 0) & (os.O_WRONLY | os.O_RDWR)
        if writes and isinstance(path, (str, bytes, os.PathLike)) and not os.fsdecode(path).startswith("/dev/"):
            point(f"before it writes {os.fsdecode(path)}")
    elif event == "urllib.Request" and not arguments[0].endswith(ETCD_LOOKS):
        point(f"before {arguments[0]}")


def around(function, what):
    def counted(*arguments, **more):
        found = what(*arguments, **more)
        if found:
            point(f"before {found}")
        returned = function(*arguments, **more)
        if found:
            point(f"after {found}")
        return returned

    return counted


def said(_client, text):
    statements = text.split("\n")[0][:200]
    return "" if LOOKS.match(text) and not ACTS.search(text) else statements


def asked(_connection, commands):
    if ("DISCARD",) in commands:
        return ""
    found = [" ".join(map(str, words[:4])) for words in commands if not looks(words)]
    return "; ".join(found)


def looks(words):
    first, both = str(words[0]).upper(), " ".join(str(word).upper() for word in words[:2])
    return first in REDIS_LOOKS or both in REDIS_LOOKS


def started(_process, arguments, *_, **__):
    name = Path(os.fsdecode(arguments[0])).name
    looks = name == "pg_controldata" or (name in ("psql", "mariadb") and len(arguments) > 2)
    return "" if looks else " ".join(map(os.fsdecode, arguments[:6]))


def main():
    global left, number, wanted
    # The process leads a process group.
    if os.getpgrp() != os.getpid():
        os.setsid()
    # Writing bytecode is not a step of a hook.
    sys.dont_write_bytecode = True
    number, program, *arguments = sys.argv[1:]
    sys.path.insert(0, str(Path(program).parent))
    import client
    import resp

    client.Client.say = around(client.Client.say, said)
    resp.Connection.all = around(resp.Connection.all, asked)
    subprocess.Popen.__init__ = around(subprocess.Popen.__init__, started)
    left, wanted = (int(number), "") if number.isdigit() else (0, number)
    sys.addaudithook(audited)
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


main()
