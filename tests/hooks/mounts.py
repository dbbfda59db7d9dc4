"""The check of a server's data: the disk of the data is mounted."""

import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

import disks
from disks import Place, configured, mount_of, unmounted


class Mounts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.fstab = self.folder / "fstab"
        self.units = self.folder / "units"
        self.units.mkdir()
        environment = {"FSTAB": str(self.fstab), "STATE_DIR": str(self.folder / "state")}
        self.mounted = {Path("/")}
        for patched in (
            patch.dict("os.environ", environment),
            patch.object(disks, "UNITS", self.units),
            patch.object(disks, "mounted", lambda: self.mounted),
        ):
            patched.start()
            self.addCleanup(patched.stop)

    def listed(self, *lines):
        self.fstab.write_text("".join(f"{line}\n" for line in lines))


class Expected(Mounts):
    def test_blanks_are_octal_numbers_and_swap_has_no_place(self):
        self.listed(
            "# UUID=0 /old ext4 defaults 0 2",
            "UUID=1 /data\\040disk/pg xfs defaults,nofail 0 2",
            "",
            "/dev/sdb1 none swap sw 0 0",
            "  UUID=2 / ext4 defaults 0 1",
            "cut",
        )
        self.assertEqual(configured(), {Path("/"), Path("/data disk/pg")})

    def test_what_nobody_mounts_by_itself_is_not_expected(self):
        self.listed(
            "UUID=1 /by-hand xfs noauto,nofail 0 2",
            "UUID=2 /at-first-use xfs noauto,x-systemd.automount 0 2",
        )
        self.assertEqual(configured(), {Path("/at-first-use")})

    def test_a_unit_of_systemd_is_as_good(self):
        (self.units / "srv-data.mount").write_text("[Mount]\nWhat=/dev/sdc\nWhere=/srv/data/\n")
        self.assertEqual(configured(), {Path("/srv/data")})

    def test_a_machine_without_a_table_expects_nothing(self):
        self.assertEqual(configured(), set())
        self.assertEqual(unmounted(self.folder), "")


class Unmounted(Mounts):
    def test_the_deepest_that_is_not_there_is_named(self):
        data = self.folder / "disk" / "pg"
        self.listed(f"a {self.folder} ext4 defaults 0 2", f"b {self.folder}/disk ext4 defaults 0 2", "c /other x d 0 2")
        self.assertRegex(unmounted(data), f"^{self.folder}/disk is not mounted")
        self.mounted |= {self.folder / "disk"}
        self.assertRegex(unmounted(data), f"^{self.folder} is not mounted")
        self.mounted |= {self.folder}
        self.assertEqual(unmounted(data), "")

    def test_the_way_over_a_link_counts_and_so_does_where_it_leads(self):
        (self.folder / "disk").mkdir()
        link = self.folder / "link"
        link.symlink_to(self.folder / "disk")
        self.listed(f"b {self.folder}/disk ext4 defaults 0 2")
        self.assertRegex(unmounted(link / "pg"), f"^{self.folder}/disk is not mounted")

    def test_a_link_that_leads_nowhere_is_told(self):
        link = self.folder / "link"
        link.symlink_to(self.folder / "gone")
        self.assertRegex(unmounted(link), "which is not there: is its disk mounted")

    def test_a_sibling_of_a_similar_name_is_another(self):
        self.listed(f"b {self.folder}/dis ext4 defaults 0 2")
        self.assertEqual(unmounted(self.folder / "disk"), "")
        self.mounted |= {Path("/a"), Path("/a/bc")}
        self.assertEqual(mount_of(Path("/a/b/c")), Path("/a"))


class Seen(Mounts):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "disk" / "pg"
        self.mounted |= {self.folder / "disk"}
        self.place = Place("pg")

    def test_where_they_were_is_where_they_are_expected(self):
        self.assertEqual((self.place.folder(), self.place.is_another(self.data)), ("", ""))
        self.place.note(self.data)
        self.assertEqual((self.place.folder(), self.place.is_another(self.data)), (str(self.data), ""))

    def test_another_folder_is_told(self):
        self.place.note(self.data)
        self.assertRegex(self.place.is_another(self.folder / "disk" / "pg-2"), f"its data were in {self.data}: set it")

    def test_another_disk_is_told_though_no_table_names_it(self):
        self.place.note(self.data)
        self.mounted = {Path("/")}
        self.assertRegex(self.place.is_another(self.data), f"{self.folder}/disk is not mounted, mount it")


class Here(unittest.TestCase):
    def test_the_kernel_is_asked(self):
        self.assertIn(Path("/proc"), disks.mounted())


if __name__ == "__main__":
    unittest.main()
