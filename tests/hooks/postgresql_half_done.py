"""A switch of PostgreSQL that has begun and not ended: the answers of the next run and of the confirmation."""

import unittest

import postgresql_switch
from allclear_hook import Blocked, Memory, NotDone, Unknown, unknown_once_begun
from postgresql_primaries import Members, Server, primary, standby


class HalfDone(Members):
    def noted(self, step):
        Memory("postgresql-db-0").remember({"step": step, "to": "db-1"})
        return self.told("db-0")

    def test_a_failover_is_not_blocked(self):
        def failover(_told):
            raise Blocked("db-1 does not answer")

        answered = unknown_once_begun(failover, postgresql_switch.is_half_done)
        for reports in ({}, {"db-0": standby("db-1")}):
            Server.reports = reports
            for step, kind in (("stopping", Unknown), ("promoting", Unknown), ("switched", Blocked)):
                with self.assertRaisesRegex(kind, "^db-1 does not answer$"):
                    answered(self.noted(step))
        Server.reports = {"db-0": primary()}
        with self.assertRaises(Blocked):
            answered(self.noted("stopping"))

    def test_it_is_confirmed_by_the_candidate_alone(self):
        for step, silent, kind in (
            ("stopping", "db-1", NotDone),
            ("promoting", "db-2", NotDone),
            ("promoting", "db-1", Unknown),
            ("switched", "db-2", Unknown),
        ):
            Server.reports = {vm: standby("db-0", streams=False) for vm in ("db-1", "db-2") if vm != silent}
            with self.assertRaises(kind):
                postgresql_switch.confirm_failover(self.noted(step))


if __name__ == "__main__":
    unittest.main()
