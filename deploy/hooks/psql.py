"""A long-lived session of `psql`: to a server of PostgreSQL, or to PgBouncer's admin console.

`psql` itself connects: PGUSER, PGPASSFILE, PGSSLMODE and so on in the hook's env table apply.
"""

from __future__ import annotations

import os
import re
import secrets

from allclear_hook import Rejected, Unreachable, progress
from client import Client

# A random mark, which no answer can contain.
END = f" end-of-answer-{secrets.token_hex(8)}"
# The words of the server, and of psql, about a login that no waiting makes possible.
REJECTED = re.compile(
    r"authentication failed|pg_hba\.conf|not permitted to log in|no password supplied"
    r"|superuser or replication role|permission denied to start WAL sender|SSL was required|certificate"
    # The words of PgBouncer.
    r"|login rejected|no such user|FATAL:\s+not allowed|(SSL|TLS connection) required"
    r'|(role|database|user) "[^"]*" does not exist|permission denied for database'
)
# The words of the server about a right that the login lacks.
LACKS_RIGHT = re.compile(r"must be (super|a member|owner)|must have|permission denied|[Oo]nly roles with")

# For a row of pg_stat_replication. A standby answers at least every 10 s (wal_receiver_status_interval). A standby that
# is gone stays `streaming` in the primary's view until wal_sender_timeout, so only a recent answer counts as proof. The
# standby's clock gives the time. An account without pg_monitor sees no time.
HAS_ANSWERED = "coalesce(reply_time > now() - interval '15 s', true)"


class Refused(Unreachable):
    """The server answered with an error."""


class LacksRight(Rejected):
    """The server answered that the login lacks a right. Waiting grants no right."""


def first_error(said: list[str]) -> str:
    """A warning at log-in may precede the reason, and details may follow."""
    errors = [line for line in said if "error:" in line or "FATAL:" in line]
    return (errors or said or ["the connection was lost"])[0].replace("psql: error: ", "")


class Psql(Client):
    def __init__(self, name: str, host: str, port: int, database: str | None = None, *options: str) -> None:
        environment = {
            "PGAPPNAME": f"allclear {os.environ.get('ALLCLEAR_VM', '')}",
            "PGCONNECT_TIMEOUT": "5",
            **os.environ,
            "PGHOST": host,
            "PGPORT": str(port),
            "PGDATABASE": database or os.environ.get("PGDATABASE", "postgres"),
        }
        super().__init__(name, ["psql", "-X", "-q", "-A", "-t", "-w", "-v", "VERBOSITY=terse", *options], environment)

    def ask(self, statement: str, seconds: float = 5) -> str:
        self.send(statement)
        return self.answer(seconds)

    def send(self, statement: str) -> None:
        """Sends a statement. `answer` returns the answer; other servers can be queried meanwhile."""
        self.say(f"{statement};\n\\echo :ERROR{END}\n")

    def answer(self, seconds: float = 5) -> str:
        text, _, has_failed = self.hear(f"{END}\n", seconds)[0].rpartition("\n")
        warned = self.warnings()
        if has_failed == "true":
            why = warned.split("ERROR:")[-1].strip() or "refused"
            raise (LacksRight if LACKS_RIGHT.search(why) else Refused)(f"{self.name}: {why}")
        if warned:
            progress(f"{self.name}: {warned}")
        return text.strip()

    def is_rejected(self) -> bool:
        return bool(REJECTED.search(self.lost))

    def why_it_ended(self, said: list[str]) -> str:
        return first_error(said)
