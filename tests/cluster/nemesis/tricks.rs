//! Faults in the replicas' environment: a wall clock that can be set, and syncs that can fail. Both come with the
//! dynamic linker, and are left out, with a message, where unavailable.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::super::clocks::faketime;

const SYNC: &str = include_str!("sync.c");

pub(super) struct Tricks {
    folder: TempDir,
    faketime: Option<PathBuf>,
    sync: Option<PathBuf>,
}

impl Tricks {
    pub(super) fn prepared() -> Self {
        let folder = TempDir::with_prefix("actricks").unwrap();
        let faketime = faketime();
        if faketime.is_none() {
            crate::left_out::lacks("libfaketime");
        }
        let sync = compiled(folder.path());
        if sync.is_none() {
            crate::left_out::lacks("cc");
        }
        Self { folder, faketime, sync }
    }

    /// Further environment variables of the replica at this place. The hooks' `HOME` identifies the replica of the
    /// hooks.
    pub(super) fn environment(&self, place: usize) -> Vec<(&'static str, String)> {
        self.set_clock(place, 0);
        let shown = |path: &Path| path.display().to_string();
        let libraries: Vec<_> = [&self.faketime, &self.sync].into_iter().flatten().map(|path| shown(path)).collect();
        vec![
            ("HOME", format!("/nowhere/db-{place}")),
            ("LD_PRELOAD", libraries.join(":")),
            ("FAKETIME_TIMESTAMP_FILE", shown(&self.clock(place))),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("FAKETIME_DISABLE_SHM", "1".into()),
            ("NO_FAKE_STAT", "1".into()),
            ("FAIL_SYNC", shown(&self.order(place))),
        ]
    }

    pub(super) fn can_set_clocks(&self) -> bool {
        self.faketime.is_some()
    }

    pub(super) fn can_fail_syncs(&self) -> bool {
        self.sync.is_some()
    }

    /// From now on the wall clock is so many seconds ahead.
    pub(super) fn set_clock(&self, place: usize, ahead: i64) {
        let next = self.folder.path().join("next");
        fs::write(&next, format!("{ahead:+}s\n")).unwrap();
        fs::rename(next, self.clock(place)).unwrap();
    }

    /// The next sync of the replica's log fails.
    pub(super) fn fail_sync(&self, place: usize) {
        fs::write(self.order(place), "").unwrap();
    }

    pub(super) fn has_failed(&self, place: usize) -> bool {
        !self.order(place).exists()
    }

    /// No sync fails any more.
    pub(super) fn spare(&self, place: usize) {
        // The file is gone if the order was carried out.
        let _ = fs::remove_file(self.order(place));
    }

    fn clock(&self, place: usize) -> PathBuf {
        self.folder.path().join(format!("{place}.clock"))
    }

    fn order(&self, place: usize) -> PathBuf {
        self.folder.path().join(format!("{place}.fails"))
    }
}

fn compiled(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("sync.c"), folder.join("sync.so"));
    fs::write(&source, SYNC).unwrap();
    let run = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    run.is_ok_and(|status| status.success()).then_some(library)
}
