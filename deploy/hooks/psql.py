"""A session of `psql` that stays: to a server of PostgreSQL, or to PgBouncer's admin console.

A switch has no time to start a program for each question. Connecting is `psql`'s matter: what the hook's env table has of
PGUSER, PGPASSFILE, PGSSLMODE and so on holds.
"""

import os
import select
import subprocess
import time

from allclear_hook import Unreachable

END = "end-of-answer"


class Refused(Unreachable):
    """The server answered with an error."""


class Psql:
    def __init__(self, name, host, port, database=None):
        self.name = name
        self._read = b""
        environment = {
            "PGAPPNAME": f"allclear {os.environ.get('ALLCLEAR_VM', '')}",
            "PGCONNECT_TIMEOUT": "5",
            **os.environ,
            "PGHOST": host,
            "PGPORT": str(port),
            "PGDATABASE": database or os.environ.get("PGDATABASE", "postgres"),
        }
        # A session of its own, so that a signal to the hook does not end it in the middle of a switch. It ends with the
        # hook, because its input does.
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["psql", "-X", "-q", "-A", "-t", "-w", "-v", "VERBOSITY=terse"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        os.set_blocking(self._process.stdout.fileno(), False)

    def ask(self, statement, seconds=5):
        self.send(statement)
        return self.answer(seconds)

    def send(self, statement):
        """Sends a statement. Its answer is fetched with `answer`, and others can be asked meanwhile."""
        try:
            self._process.stdin.write(f"{statement};\n\\echo {END} :ERROR\n".encode())
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise Unreachable(self._last_words()) from error

    def answer(self, seconds=5):
        ends = time.monotonic() + seconds
        while True:
            text, mark, rest = self._read.partition(END.encode())
            if mark and b"\n" in rest:
                break
            left = ends - time.monotonic()
            if left <= 0:
                # What it says from now on would be taken for the answer to something else.
                self.close()
                raise Unreachable(f"{self.name} did not answer within {seconds} s")
            self._read_more(left)
        said, _, self._read = rest.partition(b"\n")
        text = text.decode().strip()
        if said.strip() == b"true":
            raise Refused(f"{self.name}: {text.splitlines()[-1].split('ERROR:')[-1].strip() if text else 'refused'}")
        return text

    def _read_more(self, seconds):
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return
        more = os.read(self._process.stdout.fileno(), 65536)
        if not more:
            raise Unreachable(self._last_words())
        self._read += more

    def _last_words(self):
        self.close()
        lines = self._read.decode(errors="replace").strip().splitlines()
        return f"{self.name}: {lines[0].removeprefix('psql: error: ') if lines else 'the connection was lost'}"

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
