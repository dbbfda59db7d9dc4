//! Separate disks for replicas, so small that a test can fill them. The disks need root and tmpfs; where mounting
//! fails, the data stays in the test's folder.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Unmounts when standard input is closed, as at every end of the test, however caused. No argument of the keeper names
/// the folder, or the keeper would end with the processes of the folder.
const KEEPER: &str = r#"
trap '' INT TERM HUP
mount -t tmpfs -o "size=$SIZE,mode=755" tmpfs "$DISK" || exit 1
echo mounted
read -r _
umount -l "$DISK"
"#;

/// A mounted file system in memory: outlives its replica, and is unmounted on drop.
pub(crate) struct SmallDisk {
    path: PathBuf,
    keeper: Child,
}

impl SmallDisk {
    /// Mounts a disk. Prints a message and returns `None` where mounting fails.
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
        crate::left_out::is_forbidden("a disk of tmpfs");
        None
    }

    /// Fills the disk, so that no further write succeeds.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        for size in [64 << 10, 1] {
            let block = vec![0; size];
            while filler.write_all(&block).is_ok() {}
        }
    }

    /// Frees the space again.
    pub(crate) fn clear(&self) {
        // The disk may never have been filled.
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
