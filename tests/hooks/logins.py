"""The words of a server that refuses a login, and the words that only ask for patience."""

import unittest

import etcd_cluster
import resp
from mariadb_members import REJECTED as REJECTED_BY_MARIADB
from psql import LACKS_RIGHT, REJECTED


class Words(unittest.TestCase):
    def test_a_refusal_of_redis_is_told_from_a_server_that_is_busy(self):
        for words in (
            "NOAUTH Authentication required.",
            "WRONGPASS invalid username-password pair or user is disabled.",
            "NOPERM User hooks has no permissions to run the 'role' command",
            "ERR AUTH <password> called without any password configured for the default user.",
        ):
            self.assertTrue(words.startswith(resp.REFUSALS), words)
        for words in ("ERR max number of clients reached", "LOADING Redis is loading the dataset in memory"):
            self.assertFalse(words.startswith(resp.REFUSALS), words)

    def test_a_refusal_of_etcd_is_told_from_a_member_without_a_leader(self):
        for words in ("etcdserver: user name is empty", "etcdserver: permission denied"):
            self.assertTrue(etcd_cluster.REFUSAL.search(words), words)
        for words in ("etcdserver: no leader", "etcdserver: request timed out", "auth: not the leader"):
            self.assertFalse(etcd_cluster.REFUSAL.search(words), words)

    def test_a_refused_login_of_postgresql_is_told_from_a_server_that_is_busy(self):
        for words in (
            'FATAL:  password authentication failed for user "postgres"',
            'FATAL:  Peer authentication failed for user "postgres"',
            'FATAL:  no pg_hba.conf entry for host "10.0.0.4", user "postgres", database "postgres", no encryption',
            'FATAL:  role "nobody" does not exist',
            "fe_sendauth: no password supplied",
            'FATAL:  pg_hba.conf rejects replication connection for host "127.0.0.1", user "replicator", no encryption',
            "FATAL:  must be superuser or replication role to start walsender",
            "FATAL:  permission denied to start WAL sender",
            "server does not support SSL, but SSL was required",
            "SSL error: certificate verify failed",
            # PgBouncer
            "FATAL:  SASL authentication failed",
            "FATAL:  login rejected",
            "FATAL:  not allowed",
            "FATAL:  no such user: allclear",
            "FATAL:  SSL required",
            'root certificate file "/var/lib/allclear/.postgresql/root.crt" does not exist',
        ):
            self.assertTrue(REJECTED.search(words), words)
        for words in (
            "FATAL:  the database system is starting up",
            "FATAL:  sorry, too many clients already",
            "FATAL:  terminating connection due to administrator command",
            "SSL error: unexpected eof while reading",
            "FATAL:  number of requested standby connections exceeds max_wal_senders (currently 10)",
            "FATAL:  pgbouncer cannot connect to server",
            "Connection refused",
            "did not answer within 5 s",
        ):
            self.assertFalse(REJECTED.search(words), words)

    def test_a_right_that_is_missing_is_told_from_an_error_that_may_pass(self):
        for words in (
            "permission denied for function pg_promote",
            "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT",
            'permission denied to set parameter "synchronous_standby_names"',
            "must be superuser to execute ALTER SYSTEM command",
            "must be a member of the role whose process is being terminated or member of pg_signal_backend",
        ):
            self.assertTrue(LACKS_RIGHT.search(words), words)
        for words in ("recovery is not in progress", 'could not open file "standby.signal": Permission denied'):
            self.assertFalse(LACKS_RIGHT.search(words), words)
        # Access denied to a schema, to a table, for lack of a privilege; too many connections.
        self.assertEqual([code in REJECTED_BY_MARIADB for code in (1044, 1142, 1227, 1040)], [True, True, True, False])
