"""The Python library: a journal that is no file."""

import os
import tempfile
import unittest
from pathlib import Path

from allclear_workload import JournalError, Workload


class Journal(unittest.IsolatedAsyncioTestCase):
    async def test_a_directory_is_refused_and_nothing_is_made_beside_it(self):
        with tempfile.TemporaryDirectory() as parent:
            for folder in (f"{parent}/orders", Path(parent, "orders")):
                os.makedirs(folder, exist_ok=True)
                text = f"the journal {folder} is a directory: give a file, such as {folder}/NAME.journal"
                with self.assertRaises(JournalError) as raised:
                    await Workload("orders", f"{parent}/socket", journal=folder).__aenter__()
                self.assertEqual(str(raised.exception), text)
                self.assertEqual(os.listdir(parent), ["orders"])


if __name__ == "__main__":
    unittest.main()
