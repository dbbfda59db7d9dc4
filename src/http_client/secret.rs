//! Secrets in files. No error contains the text of a secret.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tokio::io::AsyncReadExt as _;

/// Longer than any key, token or address.
const LONGEST: u64 = 8 * 1024;

/// Reads a secret, without the line break at its end.
pub async fn read(path: &Path) -> Result<String, String> {
    let wrong = |why: &str| format!("{}: {why}", path.display());
    let file = tokio::fs::File::open(path).await.map_err(|error| wrong(&error.to_string()))?;
    let mut text = String::new();
    let length = file.take(LONGEST + 1).read_to_string(&mut text).await;
    let length = length.map_err(|error| wrong(&error.to_string()))?;
    match text.trim() {
        "" => Err(wrong("is empty")),
        _ if length as u64 > LONGEST => Err(wrong("is longer than 8 KiB: not a secret")),
        secret => Ok(secret.to_owned()),
    }
}

/// A warning if every user of this machine can read the file. A missing file is none: `read` fails on it.
pub async fn exposed(path: &Path) -> Option<String> {
    let mode = tokio::fs::metadata(path).await.ok()?.permissions().mode();
    (mode & 0o007 != 0).then(|| format!("{} can be read by everybody on this machine: chmod o= it", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[tokio::test]
    async fn a_secret_is_read_without_its_line_break_and_who_else_may_read_it_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        assert!(read(file.path()).await.unwrap_err().ends_with("is empty"));
        write("key\n");
        assert_eq!(read(file.path()).await.as_deref(), Ok("key"));
        write(&"x".repeat(9_000));
        assert!(!read(file.path()).await.unwrap_err().contains("xxx"));
        assert_eq!(exposed(file.path()).await, None);
        std::fs::set_permissions(file.path(), Permissions::from_mode(0o644)).unwrap();
        assert!(exposed(file.path()).await.is_some());
        assert!(read(Path::new("/nowhere/key")).await.is_err());
    }
}
