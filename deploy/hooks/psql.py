"""A session of `psql` that stays: to a server of PostgreSQL, or to PgBouncer's admin console.

Connecting is `psql`'s matter: what the hook's env table has of PGUSER, PGPASSFILE, PGSSLMODE and so on holds.
"""

import os

from allclear_hook import Client, Unreachable

END = " end-of-answer"


class Refused(Unreachable):
    """The server answered with an error."""


class Psql(Client):
    def __init__(self, name, host, port, database=None):
        environment = {
            "PGAPPNAME": f"allclear {os.environ.get('ALLCLEAR_VM', '')}",
            "PGCONNECT_TIMEOUT": "5",
            **os.environ,
            "PGHOST": host,
            "PGPORT": str(port),
            "PGDATABASE": database or os.environ.get("PGDATABASE", "postgres"),
        }
        super().__init__(name, ["psql", "-X", "-q", "-A", "-t", "-w", "-v", "VERBOSITY=terse"], environment)

    def ask(self, statement, seconds=5):
        self.send(statement)
        return self.answer(seconds)

    def send(self, statement):
        """Sends a statement. Its answer is fetched with `answer`, and others can be asked meanwhile."""
        self.say(f"{statement};\n\\echo :ERROR{END}\n")

    def answer(self, seconds=5):
        text, _, has_failed = self.hear(f"{END}\n", seconds)[0].rpartition("\n")
        text = text.strip()
        if has_failed == "true":
            raise Refused(f"{self.name}: {text.splitlines()[-1].split('ERROR:')[-1].strip() if text else 'refused'}")
        return text

    def why_it_ended(self, said):
        return said[0].removeprefix("psql: error: ") if said else super().why_it_ended(said)
