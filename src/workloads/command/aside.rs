//! Folders that could not be made sense of: set aside for people to look at, a bounded number of them.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::clock;
use super::memory::NEW;
use super::spool::{Doing, SpoolError};

const MAX_ASIDE: usize = 16;
pub(super) const ASIDE: &str = ".aside";

/// Makes room by removing the ones set aside first.
pub(super) fn set_aside(spool: &Path, folder: &Path) -> Result<PathBuf, SpoolError> {
    let aside = spool.join(ASIDE);
    DirBuilder::new().recursive(true).mode(0o700).create(&aside).doing("make", &aside)?;
    // Named by time, so the first in the order of names was set aside first.
    let mut names = names_in(&aside)?;
    names.sort_unstable();
    for name in names.iter().take((names.len() + 1).saturating_sub(MAX_ASIDE)) {
        let old = aside.join(name);
        fs::remove_dir_all(&old).or_else(|_| fs::remove_file(&old)).doing("remove", &old)?;
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let aside = aside.join(format!("{:020}-{name:.200}", clock::now().0));
    fs::rename(folder, &aside).doing("set aside", folder)?;
    Ok(aside)
}

/// Our own hidden entries are left out.
pub(super) fn names_in(folder: &Path) -> Result<Vec<String>, SpoolError> {
    let entries = fs::read_dir(folder).doing("read", folder)?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    Ok(names.filter(|name| ![".lock", ASIDE, NEW].contains(&name.as_str())).collect())
}
