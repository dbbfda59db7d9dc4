#!/usr/bin/env python3
"""Installs a cluster on three fresh Debian machines (systemd in a container, each with a network namespace) by the
literal commands of the pages install.md and upgrade.md; then come an event, an upgrade and a downgrade during an
open event, a backup, the loss of all disks, the watchdog, remove and purge.

    fresh.py PROGRAM BASE PACKAGE NEXT_PACKAGE

PROGRAM serves the fake cloud. BASE is a folder with a Debian, only read, and made if missing. The script needs root,
debootstrap, systemd-nspawn and ip. All traffic stays in the namespaces, and all processes end with the script.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "deploy" / "docs"
VMS = {"db-0": "10.0.0.4", "db-1": "10.0.0.5", "db-2": "10.0.0.6"}
CLOUD_PORT = 8080
LIMIT = 90
FIRST_HOOK = '["/usr/bin/logger", "--tag", "first-hook", "drained"]'
# Packages of the base beside the essential ones: an init, the dependencies of the package, and the recommended Python.
INCLUDED = "systemd,systemd-sysv,dbus,iproute2,python3,init-system-helpers"

# Forwards connections between a namespace and the shared folder: LISTEN and CONNECT are a port or a path.
CABLE = """
import socket, sys, threading
def end(text, listens):
    kind = socket.AF_INET if text.isdigit() else socket.AF_UNIX
    made = socket.socket(kind, socket.SOCK_STREAM)
    address = ("127.0.0.1", int(text)) if text.isdigit() else text
    if listens:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(64)
    else:
        made.connect(address)
    return made
def carry(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        other.close()
listener = end(sys.argv[1], True)
while True:
    near, _ = listener.accept()
    try:
        far = end(sys.argv[2], False)
    except OSError:
        near.close()
        continue
    for pair in ((near, far), (far, near)):
        threading.Thread(target=carry, args=pair, daemon=True).start()
"""


def say(text):
    print(f"== after {time.monotonic() - BEGAN:.0f} s: {text}", flush=True)


def run(*command, check=True, **kept):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False, **kept
    )
    if check and done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def until(what, look):
    ends = time.monotonic() + LIMIT
    while not (seen := look()):
        if time.monotonic() > ends:
            raise SystemExit(f"waited {LIMIT} s in vain until {what}")
        time.sleep(0.1)
    return seen


def make_base(base):
    if (base / "usr/bin/systemctl").exists():
        return
    say(f"a Debian into {base}")
    base.parent.mkdir(parents=True, exist_ok=True)
    unfinished = base.with_suffix(".unfinished")
    run("rm", "-rf", str(unfinished))
    run("debootstrap", "--variant=minbase", f"--include={INCLUDED}", "bookworm", str(unfinished))
    # Each machine sets a host name.
    (unfinished / "etc/hostname").unlink(missing_ok=True)
    unfinished.rename(base)


class Network:
    """A namespace with a bridge and the fake cloud, and one namespace for each machine."""

    def __init__(self):
        self.name = f"acf{os.getpid()}"
        self.made = []

    def make(self):
        self.add("cloud")
        run("ip", "-n", self.of("cloud"), "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self.of("cloud"), "link", "set", "br0", "up")
        for vm, address in VMS.items():
            self.add(vm)
            run("ip", "-n", self.of("cloud"), "link", "add", vm, "type", "veth", "peer", "name", "eth0",
                "netns", self.of(vm))
            run("ip", "-n", self.of("cloud"), "link", "set", vm, "master", "br0", "up")
            run("ip", "-n", self.of(vm), "address", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", self.of(vm), "link", "set", "eth0", "up")

    def add(self, place):
        run("ip", "netns", "add", self.of(place))
        self.made.append(place)
        run("ip", "-n", self.of(place), "link", "set", "lo", "up")

    def of(self, place):
        return f"{self.name}-{place}"

    def inside(self, place):
        return ["ip", "netns", "exec", self.of(place)]

    def remove(self):
        for place in self.made:
            run("ip", "netns", "delete", self.of(place), check=False)


class Cloud:
    def __init__(self, network, program, folder, processes):
        self.network = network
        command = [program, "fake-cloud", "--listen", f"127.0.0.1:{CLOUD_PORT}", "--vms", ",".join(VMS)]
        with open(folder / "cloud.log", "w") as log:
            processes.append(subprocess.Popen(network.inside("cloud") + command, stdout=log, stderr=log))
        for number, vm in enumerate(VMS, 1):
            path = str(folder / f"{vm}.sock")
            for place, ends in (("cloud", (path, str(CLOUD_PORT + number))), (vm, (str(CLOUD_PORT), path))):
                processes.append(subprocess.Popen([*network.inside(place), sys.executable, "-c", CABLE, *ends]))
        until("the cloud answers", lambda: self.ask("GET", "/control/state", check=False))

    def ask(self, method, path, body=None, check=True):
        code = ("import sys, urllib.request as r; "
                f"q = r.Request('http://127.0.0.1:{CLOUD_PORT}' + sys.argv[2], method=sys.argv[1], "
                "data=sys.argv[3].encode() or None); print(r.urlopen(q, timeout=10).read().decode())")
        told = subprocess.run([*self.network.inside("cloud"), sys.executable, "-c", code, method, path,
                               json.dumps(body) if body else ""],
                              capture_output=True, text=True, check=False)
        if check and told.returncode:
            raise SystemExit(f"{method} {path}: {told.stderr}")
        return json.loads(told.stdout) if told.returncode == 0 and told.stdout.strip() else None

    def announce(self, **event):
        """The event starts at its approval, and lasts until `finish`."""
        whole = {"start_delay": 0, "impact": "24h", "linger": 0, **event}
        return self.ask("POST", "/control/events", whole)["id"]

    def accepted(self, event):
        approvals = self.ask("GET", "/control/approvals")["approvals"]
        return [each for each in approvals if each["event"] == event]


class Group:
    """A control group for the systemd of one machine."""

    def __init__(self, name):
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        self.path = Path(next(mount[1] for mount in mounts if mount[2] == "cgroup2")) / name

    def enter(self):
        self.path.mkdir(exist_ok=True)
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        for folder, _, _ in os.walk(self.path, topdown=False):
            until(f"{folder} is empty", lambda: not Path(folder, "cgroup.procs").read_text())
            os.rmdir(folder)


class Machine:
    """One booted Debian."""

    def __init__(self, name, network, base, folder, processes):
        self.name = name
        self.group = Group(network.of(name))
        command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--volatile=overlay",
                   f"--directory={base}", f"--machine={network.of(name)}", f"--hostname={name}",
                   f"--network-namespace-path=/run/netns/{network.of(name)}", "--link-journal=no",
                   "--resolv-conf=off", "--timezone=off", "--console=pipe", "--boot"]
        with open(folder / f"{name}.console", "w") as log:
            self.nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           preexec_fn=self.group.enter,
                                           env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"})
        processes.append(self.nspawn)
        self.init = until(f"{name} has an init", self.find_init)
        until(f"{name} is up", lambda: self.does("systemctl is-system-running", check=False).strip()
              in ("running", "degraded"))

    def find_init(self):
        if self.nspawn.poll() is not None:
            raise SystemExit(f"{self.name} does not boot; see its console")
        children = Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        return next((child for child in children
                     if Path(f"/proc/{child}/comm").read_text().strip() in ("systemd", "init")), None)

    def root(self):
        return Path(f"/proc/{self.init}/root")

    def does(self, script, check=True):
        """Runs a script as root in the home directory, as after a login."""
        inside = ["nsenter", "--target", self.init, "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd",
                  "env", "--ignore-environment", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                  f"ALLCLEAR__METADATA__ENDPOINT=http://127.0.0.1:{CLOUD_PORT}",
                  "bash", "-c", "cd; set -e\n" + script]
        return run(*inside, check=check)

    def takes(self, package):
        self.does("rm -f allclear_*.deb")
        (self.root() / "root" / package.name).write_bytes(package.read_bytes())

    def hook_is(self, command, user=""):
        path = self.root() / "etc/allclear/allclear.toml"
        table = f"command = {command}\n{user}\n"
        known = r"^command = .*\n(user = .*)?\n?"
        path.write_text(re.sub(known, lambda _: table, path.read_text(), flags=re.MULTILINE))

    def replica(self):
        return int(self.does("systemctl show --value --property MainPID allclear"))

    def status(self):
        told = self.does("allclear status --json 2>/dev/null", check=False)
        return json.loads(told) if told.strip().startswith("{") else None

    def hook_lines(self):
        return self.does("journalctl --no-pager --output cat --identifier first-hook", check=False).split("\n")[:-1]


def steps():
    """The blocks of the pages: the first comment (the place) and the commands of each block."""
    text = "\n".join((DOCS / page).read_text() for page in ("install.md", "upgrade.md"))
    return re.findall(r"^```sh\n# ([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def step(wanted):
    [script] = [script for whom, script in steps() if whom == wanted]
    return script


def play(machines, *wanted):
    """Runs the blocks for the given places, in the order of the pages."""
    found = [(whom, script) for whom, script in steps() if whom in wanted]
    assert found, f"the pages have no step {wanted}"
    for whom, script in found:
        names = VMS if whom == "on each machine" else [whom.split()[1].rstrip(",")]
        for name in names:
            say(f"{name}: {script.strip()}")
            print(machines[name].does(script), flush=True)
            if script.strip() == "allclear status":
                # The page describes this result.
                all_is_well(machines)


def all_is_well(machines):
    def look():
        told = [machine.status() for machine in machines.values()]
        return all(one and one["quorum"] and len(one["replicas"]) == 3 for one in told) and all(
            replica["reachable"] and replica["voter"] and replica["metadata"] == "healthy"
            for one in told for replica in one["replicas"])
    until("all three answer and have healthy channels", look)


def main():
    program, base, package, following = sys.argv[1], *map(Path, sys.argv[2:])
    make_base(base)
    processes, network, machines = [], Network(), {}
    with tempfile.TemporaryDirectory(prefix="allclear-fresh-") as scratch:
        try:
            network.make()
            cloud = Cloud(network, program, Path(scratch), processes)
            for name in VMS:
                machines[name] = Machine(name, network, base, Path(scratch), processes)
            say("three machines run")
            live(cloud, machines, program, package, following)
            say("all is well")
        except BaseException:
            for console in Path(scratch).glob("*.console"):
                print(f"-- {console.name}\n{console.read_text()[-3000:]}", flush=True)
            raise
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGTERM)
            for process in processes:
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            for machine in machines.values():
                machine.group.remove()
            network.remove()


def gives_certificates(machines, program):
    """Makes the certificates here and copies them to the machines, before the package makes the folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(program, f"{folder}/allclear")
        run("bash", "-c", "set -e\n" + step("where the authority is kept"), cwd=folder,
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        for name, machine in machines.items():
            place = machine.root() / "etc/allclear/tls"
            place.mkdir(parents=True)
            for file in Path(folder, "orders-ca", name).iterdir():
                (place / file.name).write_bytes(file.read_bytes())


def live(cloud, machines, program, package, following):
    for machine in machines.values():
        machine.takes(package)
        (machine.root() / "etc/default/allclear").write_text(
            f"ALLCLEAR__METADATA__ENDPOINT=http://127.0.0.1:{CLOUD_PORT}\n")
    gives_certificates(machines, program)
    play(machines, "on each machine", "on db-0", "on db-1")
    all_is_well(machines)
    is_sandboxed(machines["db-0"])
    lines = machines["db-1"].hook_lines()
    assert lines == ["drained"], lines

    say("an event")
    event = cloud.announce(type="Reboot", source="User", vm="db-1", notice="15m")
    until("it is approved", lambda: cloud.accepted(event))
    assert len(machines["db-1"].hook_lines()) == 2, "the hook ran for the drill and for the event"
    is_over(cloud, machines, event)

    changes_versions(cloud, machines, package, following)
    hooks_have_other_users(machines)
    is_watched(machines)
    comes_back_from_a_backup(machines)
    goes(machines["db-0"])
    assert len(cloud.accepted(event)) == 1


def is_over(cloud, machines, event):
    until("it starts", lambda: cloud.ask("GET", f"/control/events/{event}")["status"] == "Started")
    cloud.ask("POST", f"/control/events/{event}/finish")
    until("it is closed", lambda: not machines["db-0"].status()["events"])


def is_sandboxed(machine):
    show = "systemctl show --property User,NoNewPrivileges,ProtectSystem,StatusText,Result allclear"
    told = machine.does(show)
    assert "User=allclear" in told and "NoNewPrivileges=yes" in told, told
    pid = machine.replica()
    status = machine.does(f"cat /proc/{pid}/status")
    for confined in (r"^CapBnd:\s0+$", r"^Seccomp:\s2$"):
        assert re.search(confined, status, re.MULTILINE), status
    say(f"sandboxed: {machine.does('systemd-analyze security --no-pager allclear | tail -1').strip()}")


def changes_versions(cloud, machines, package, following):
    """Upgrade and downgrade, each with an open event and a running hook."""
    for machine in machines.values():
        machine.hook_is('["/bin/sh", "-c", "logger --tag slow begun; sleep 20; logger --tag slow ended"]')
        machine.does("systemctl restart allclear")
    all_is_well(machines)

    def begun():
        return machines["db-1"].does("journalctl --no-pager --output cat --identifier slow").split("\n")[:-1]

    for new in (following, package):
        say(f"upgrade to {new.name}")
        event = cloud.announce(type="Reboot", source="Platform", vm="db-1", notice="10m")
        before = begun().count("begun")
        until("the hook runs", lambda: begun().count("begun") > before)
        for machine in machines.values():
            machine.takes(new)
        for machine in machines.values():
            pid = machine.replica()
            print(machine.does(step("on each machine, for another version")), flush=True)
            assert machine.replica() not in (0, pid), "it was restarted"
            all_is_well(machines)
            assert machine.does("dpkg-query --show --showformat '${Version}' allclear") == new.name.split("_")[1]
        until("it is approved", lambda: cloud.accepted(event))
        assert len(cloud.accepted(event)) == 1
        lines = begun()
        assert lines.count("begun") == before + 1 and lines.count("ended") == before + 1, lines
        is_over(cloud, machines, event)


def hooks_have_other_users(machines):
    """The two drop-ins: the whole replica as a database's user, and as root with a hook of another user."""
    machine = machines["db-1"]
    machine.does("""
        echo 'u postgres - - /var/lib/postgresql' | systemd-sysusers -
        install --directory --owner postgres --mode 700 /var/lib/postgresql
        mkdir -p /etc/systemd/system/allclear.service.d""")
    for drop_in, user in (("database-user", ""), ("hooks-of-many-users", 'user = "postgres"')):
        machine.hook_is(f'["/bin/sh", "-c", "id --user --name > /var/lib/postgresql/{drop_in}"]', user)
        machine.does(f"""
            cp /usr/share/doc/allclear/systemd/{drop_in}.conf /etc/systemd/system/allclear.service.d/
            systemctl daemon-reload
            systemctl restart allclear""")
        all_is_well(machines)
        machine.does("allclear drill --config /etc/allclear/allclear.toml Reboot --vm db-1")
        assert machine.does(f"cat /var/lib/postgresql/{drop_in}").strip() == "postgres"
        say(f"{drop_in}: {machine.does('systemd-analyze security --no-pager allclear | tail -1').strip()}")
        machine.does(f"rm /etc/systemd/system/allclear.service.d/{drop_in}.conf; systemctl daemon-reload")
    machine.hook_is(FIRST_HOOK)
    machine.does("systemctl restart allclear")
    all_is_well(machines)


def is_watched(machines):
    """systemd restarts a replica that hangs, and leaves a replica without a quorum running."""
    say("a replica that hangs")
    for machine in machines.values():
        machine.does("""
            mkdir -p /etc/systemd/system/allclear.service.d
            printf '[Service]\\nWatchdogSec=3s\\n' > /etc/systemd/system/allclear.service.d/test.conf
            systemctl daemon-reload
            systemctl restart allclear""")
    all_is_well(machines)
    hanging = machines["db-2"]
    pid = hanging.replica()
    hanging.does(f"kill -STOP {pid}")
    until("systemd starts it anew", lambda: hanging.replica() not in (0, pid))
    assert "watchdog" in hanging.does("journalctl --no-pager --unit allclear")
    all_is_well(machines)
    say("a replica without a quorum")
    for name in ("db-1", "db-2"):
        machines[name].does("systemctl stop allclear")
    lonely = machines["db-0"]
    pid = lonely.replica()
    began = time.monotonic()
    until("three times its watchdog's time has passed", lambda: time.monotonic() - began > 10)
    assert lonely.replica() == pid and not lonely.status()["quorum"]
    for machine in machines.values():
        machine.does("rm /etc/systemd/system/allclear.service.d/test.conf; systemctl daemon-reload; "
                     "systemctl restart allclear")
    all_is_well(machines)


def comes_back_from_a_backup(machines):
    play(machines, "on db-2, for a backup")
    all_is_well(machines)
    say("all disks are lost")
    for machine in machines.values():
        machine.does("systemctl stop allclear; rm -rf /var/lib/allclear/*")
    play(machines, "on db-2, for a restore")
    until("it leads alone", lambda: (machines["db-2"].status() or {}).get("role") == "leader")
    for name in ("db-0", "db-1"):
        machines[name].does("systemctl start allclear")
    all_is_well(machines)
    events = machines["db-0"].does("allclear events --json")
    assert events.count('"outcome": "completed"') + events.count('"outcome":"completed"') >= 3, events


def goes(machine):
    say("remove and purge")
    machine.does("apt-get remove --yes allclear")
    assert machine.does("ls /usr/bin/allclear /etc/allclear/allclear.toml", check=False).count("No such file") == 1
    assert machine.does("cat /proc/*/comm 2>/dev/null | grep --count --line-regexp allclear", check=False) == "0\n"
    machine.does("apt-get purge --yes allclear")
    left = machine.does("ls -d /etc/allclear/* /var/lib/allclear* /run/allclear /usr/lib/allclear "
                        "/etc/systemd/system/*/allclear.service 2>/dev/null", check=False).split()
    assert left in ([], ["/etc/allclear/tls"]), left


BEGAN = time.monotonic()
main()
