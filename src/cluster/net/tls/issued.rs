//! Writes issued certificates into a folder for each machine.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use allclear_core::model::time::Timestamp;
use anyhow::Context as _;

use super::authority::{Authority, Made};

/// The authority's certificate.
pub const CA: &str = "ca.pem";

/// Writes a new key and certificate, and the authority's certificate, into the folder; returns the end of the
/// certificate's validity.
pub fn issue(
    (authority, ca): (&Authority, &str),
    replica: &str,
    days: u32,
    folder: &Path,
    now: Timestamp,
) -> anyhow::Result<Timestamp> {
    let Made { cert, key, expires_at } = authority.issue(replica, days, now)?;
    make_folder(folder)?;
    for (name, text, mode) in [("node.key", key.as_str(), 0o600), ("node.pem", &cert, 0o644), (CA, ca, 0o644)] {
        replace(folder, name, text, mode)?;
    }
    Ok(expires_at)
}

/// Creates a folder for the current user only.
pub fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make {}", folder.display()))
}

/// Writes a file that must not exist yet.
pub fn write_new(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Replaces a file atomically, so no reader sees a half-written file.
fn replace(folder: &Path, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
    let (path, beside) = (folder.join(name), folder.join(format!(".{name}.{}", std::process::id())));
    write_new(&beside, text, mode)?;
    let replaced = fs::rename(&beside, &path);
    replaced.with_context(|| format!("cannot write {}", path.display()))
}
