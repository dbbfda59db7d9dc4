//! Where the metadata endpoint is, for VMs outside a virtual network: as the newest DHCP lease says that is not over, in
//! the files of dhclient, systemd-networkd and `NetworkManager`.
//!
//! Refuses files that everybody may write, and reads no more than the end of a few.

use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::lease::{self, Lease};
use crate::machine::time::Timestamp;

/// Where the endpoint is everywhere else.
pub const USUAL: &str = "http://169.254.169.254";
const FOLDERS: [&str; 4] = ["run/systemd/netif/leases", "var/lib/dhcp", "var/lib/dhclient", "var/lib/NetworkManager"];
/// Of one folder; a machine has a few interfaces.
const MOST_FILES: usize = 256;
/// dhclient adds its leases at the end, and a lease has a few hundred bytes.
const READ_BYTES: u64 = 64 << 10;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Discovery {
    /// This lease tells where it is.
    Lease { address: Ipv4Addr, file: PathBuf },
    /// This one tells nothing that could be used.
    Refused { file: PathBuf, why: String },
    /// None that is not over carries the option, as far as they can be read.
    Nothing { unread: Vec<String> },
}

impl Discovery {
    /// Reads the leases of a machine whose files are in `root`.
    pub fn of(root: &Path, now: Timestamp) -> Self {
        let (mut newest, mut unread) = (None::<(Timestamp, PathBuf, Lease)>, Vec::new());
        for folder in FOLDERS.map(|folder| root.join(folder)) {
            match leases_in(&folder, &mut unread) {
                Ok(leases) => {
                    for (written, file, lease) in leases.into_iter().filter(|(_, _, lease)| !lease.is_over(now)) {
                        if newest.as_ref().is_none_or(|(before, _, _)| *before <= written) {
                            newest = Some((written, file, lease));
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unread.push(format!("{}: {error}", folder.display())),
            }
        }
        match newest {
            Some((_, file, Lease { address: Ok(address), .. })) => Self::Lease { address, file },
            Some((_, file, Lease { address: Err(why), .. })) => Self::Refused { file, why },
            None => Self::Nothing { unread },
        }
    }

    /// The endpoint to use.
    pub fn endpoint(&self) -> String {
        match self {
            Self::Lease { address, .. } => format!("http://{address}"),
            Self::Refused { .. } | Self::Nothing { .. } => USUAL.to_owned(),
        }
    }

    /// It is as it was looked for.
    pub const fn is_found(&self) -> bool {
        matches!(self, Self::Lease { .. })
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease { address, file } => {
                write!(f, "the DHCP lease in {} has the metadata endpoint at {address} (option 245)", file.display())
            }
            Self::Refused { file, why } => {
                write!(f, "option 245 of the DHCP lease in {}: {why}; {USUAL} is used", file.display())
            }
            Self::Nothing { unread } if unread.is_empty() => {
                write!(f, "no DHCP lease that is not over has option 245; {USUAL} is used")
            }
            Self::Nothing { unread } => {
                write!(f, "no DHCP lease that can be read has option 245 ({}); {USUAL} is used", unread.join("; "))
            }
        }
    }
}

/// With the file that each is in, and when that was written.
fn leases_in(folder: &Path, unread: &mut Vec<String>) -> io::Result<Vec<(Timestamp, PathBuf, Lease)>> {
    let mut leases = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(MOST_FILES).filter_map(Result::ok) {
        let file = entry.path();
        // As it is, not what it may point to.
        let Ok(found) = entry.metadata() else { continue };
        if !found.is_file() || !is_named_as_a_lease(&file) {
            continue;
        }
        match text_of(&file, &found) {
            Ok(text) => {
                let written = written(&found);
                leases.extend(lease::read(&text, written).into_iter().map(|lease| (written, file.clone(), lease)));
            }
            Err(why) => unread.push(format!("{}: {why}", file.display())),
        }
    }
    Ok(leases)
}

/// The number of an interface, or anything of leases.
fn is_named_as_a_lease(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let ends = |ending: &str| file.extension().is_some_and(|extension| extension == ending);
    name.bytes().all(|letter| letter.is_ascii_digit()) || ends("lease") || ends("leases")
}

fn text_of(path: &Path, found: &Metadata) -> Result<String, String> {
    if found.permissions().mode() & 0o002 != 0 {
        return Err("everybody may write it".into());
    }
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(found.len().saturating_sub(READ_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(READ_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map_err(|error: io::Error| error.to_string())
}

fn written(found: &Metadata) -> Timestamp {
    let since = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Timestamp::default().plus(since.unwrap_or(Duration::ZERO))
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
