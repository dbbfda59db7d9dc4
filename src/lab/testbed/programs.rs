//! Where the programs of servers are, if installed.

use std::fs;
use std::path::{Path, PathBuf};

use allclear_server::config;

/// Searches also the folders in which Debian keeps programs outside of the path of an ordinary user.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = config::environment().find(|(name, _)| name == "PATH").map(|(_, path)| path).unwrap_or_default();
    // Folders that any user can read come first: the own path may begin with a folder that is closed to other users.
    let mut folders: Vec<PathBuf> = ["/usr/bin", "/usr/sbin", "/usr/local/sbin"].map(PathBuf::from).into();
    folders.extend(std::env::split_paths(&path));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    folders.iter().map(|folder| folder.join(program)).find(|path: &PathBuf| Path::exists(path))
}

/// The first program that is not installed.
pub fn missing<'p>(programs: &[&'p str]) -> Option<&'p str> {
    programs.iter().copied().find(|program| find(program).is_none())
}
