//! Whether the disk on which the data directory has to be is mounted: a replica that starts on the empty mount point has
//! lost its disk, and fills the disk of the system.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::finding::Finding;

const CHECK: &str = "disk";

/// Reads the table of file systems and the present mounts; `None` where the system has no such tables.
pub(super) fn finding(folder: &Path) -> Option<Finding> {
    let (table, mounts) = (fs::read("/etc/fstab").ok()?, fs::read("/proc/self/mounts").ok()?);
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let missing = expected(&folder, &table, &mounts)?;
    let what = format!(
        "{} has to be on the disk of {}, by /etc/fstab, but nothing is mounted there",
        folder.display(),
        missing.display()
    );
    Some(Finding::fail(CHECK, what, format!("mount it: `mount {}`", missing.display())))
}

/// The nearest mount point above the folder in the table of file systems, if nothing is mounted there. A root is always
/// mounted, also where the table of mounts does not name it.
fn expected(folder: &Path, table: &[u8], mounts: &[u8]) -> Option<PathBuf> {
    let above = mount_points(table).filter(|point| folder.starts_with(point) && point.parent().is_some());
    let nearest = above.max_by_key(|point| point.components().count())?;
    (!mount_points(mounts).any(|mounted| mounted == nearest)).then_some(nearest)
}

/// The second column of each line; `none` and other words are no path.
fn mount_points(table: &[u8]) -> impl Iterator<Item = PathBuf> {
    let lines = table.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii_start().starts_with(b"#"));
    let words = lines.filter_map(|line| {
        line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1).map(<[u8]>::to_vec)
    });
    words.map(|word| PathBuf::from(std::ffi::OsString::from_vec(unescaped(&word)))).filter(|path| path.is_absolute())
}

/// `\040` is a blank.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::new(), word);
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            plain.push(byte);
            rest = &after[3..];
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# /etc/fstab\n\
        /dev/sda1 / ext4 defaults 0 1\n\
        UUID=1b \t/var/lib/the\\040data xfs nofail 0 2\n\
        /dev/sdc1 /var ext4 nofail\n\
        /swapfile none swap sw 0 0\n\n broken\n";

    #[test]
    fn the_nearest_mount_point_of_the_table_has_to_be_mounted() {
        let unmounted = |folder: &str, mounts: &str| expected(Path::new(folder), TABLE.as_bytes(), mounts.as_bytes());
        let root = "/dev/sda1 / ext4 rw 0 0\n";
        let all = format!("{root}/dev/sdc1 /var ext4 rw 0 0\n/dev/sdd1 /var/lib/the\\040data xfs rw 0 0\n");
        for (folder, missing) in [
            ("/var/lib/the data/allclear", Some("/var/lib/the data")),
            ("/var/lib/the data", Some("/var/lib/the data")),
            ("/var/lib/the", Some("/var")),
            ("/srv/allclear", None),
        ] {
            assert_eq!(unmounted(folder, root), missing.map(PathBuf::from), "{folder}");
            assert_eq!(unmounted(folder, &all), None, "{folder}");
        }
        assert_eq!(unmounted("/srv/allclear", ""), None, "a root without a line");
    }
}
