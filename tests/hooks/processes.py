"""A process may end while a hook inspects the process."""

import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

import etcd_check
import postgresql_check


def ended():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


class Ended(unittest.TestCase):
    def test_an_etcd_that_has_ended_says_nothing_of_the_data(self):
        gone = Path("/proc") / str(ended())
        with tempfile.TemporaryDirectory() as folder, patch.dict("os.environ", {"DATA_DIR": folder}):
            with patch.object(etcd_check, "processes", list):
                alone = etcd_check.data()
            with patch.object(etcd_check, "processes", lambda: [gone]):
                self.assertEqual(etcd_check.data(), alone)

    def test_a_process_whose_user_has_no_name_is_told_by_its_number(self):
        with tempfile.TemporaryDirectory() as folder, patch.object(Path, "owner", side_effect=KeyError):
            self.assertRegex(etcd_check.user_of(Path(folder)), "^with the number [0-9]+$")

    def test_a_server_that_has_ended_has_no_user(self):
        self.assertIsNone(postgresql_check.user_of(ended()))
