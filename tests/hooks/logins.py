"""The words of a server of PostgreSQL that refuses a login, and the words that only ask for patience."""

import unittest

from psql import REJECTED


class Words(unittest.TestCase):
    def test_a_refused_login_is_told_from_a_server_that_is_busy(self):
        for words in (
            'FATAL:  password authentication failed for user "postgres"',
            'FATAL:  Peer authentication failed for user "postgres"',
            'FATAL:  no pg_hba.conf entry for host "10.0.0.4", user "postgres", database "postgres", no encryption',
            'FATAL:  role "nobody" does not exist',
            "fe_sendauth: no password supplied",
        ):
            self.assertTrue(REJECTED.search(words), words)
        for words in (
            "FATAL:  the database system is starting up",
            "FATAL:  sorry, too many clients already",
            "FATAL:  terminating connection due to administrator command",
            "Connection refused",
            "did not answer within 5 s",
        ):
            self.assertFalse(REJECTED.search(words), words)
