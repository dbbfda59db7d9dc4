//! Disks of their own for replicas, so small that a test can fill them. They need root and tmpfs; where they cannot be
//! made, the data stays in the test's folder.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Unmounts when its standard input is closed, which the end of the test does, however it comes about. No argument of
/// it names the folder, or it would end with the processes that do.
const KEEPER: &str = r#"
trap '' INT TERM HUP
mount -t tmpfs -o "size=$SIZE,mode=755" tmpfs "$DISK" || exit 1
echo mounted
read -r _
umount -l "$DISK"
"#;

/// A mounted file system in memory: it outlives its replica, and ends with this.
pub(crate) struct SmallDisk {
    path: PathBuf,
    keeper: Child,
}

impl SmallDisk {
    /// `None`, and a word about it, where none can be mounted.
    pub(crate) fn at(path: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir(path).unwrap();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .envs([("DISK", path.to_str().unwrap()), ("SIZE", size)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        if said.trim() == "mounted" {
            return Some(Self { path: path.into(), keeper });
        }
        keeper.wait().unwrap();
        println!("SKIPPED: no disk can be filled, because tmpfs cannot be mounted here; it needs root");
        None
    }

    /// Nothing more can be written.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        for size in [64 << 10, 1] {
            let block = vec![0; size];
            while filler.write_all(&block).is_ok() {}
        }
    }

    /// There is room again.
    pub(crate) fn clear(&self) {
        // It may never have been filled.
        let _ = std::fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
