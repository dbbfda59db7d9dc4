//! Secrets in files. No error contains the text of a secret.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// The limit in bytes; keys, tokens and addresses are shorter.
const LONGEST: u64 = 8 * 1024;

/// Reads a secret without trailing blanks and line break. Only root, this process's user and the file's group may have
/// access to the file.
pub async fn read(path: &Path) -> Result<String, String> {
    read_for(path, allclear_files::own_uid()).await
}

/// Reads a secret as [`read`], for the user `uid`.
pub async fn read_for(path: &Path, uid: u32) -> Result<String, String> {
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || read_now(&owned, uid)).await;
    read.map_err(|_| format!("{}: the task that reads the file ended early", path.display()))?
}

fn read_now(path: &Path, uid: u32) -> Result<String, String> {
    let wrong = |why: &str| format!("{}: {why}", path.display());
    let found = fs::metadata(path).map_err(|error| wrong(&error.to_string()))?;
    // Opening a pipe would wait for its writer.
    if !found.is_file() {
        return Err(wrong("is not a regular file"));
    }
    allclear_files::check_secret(path, uid).map_err(|why| why.to_string())?;
    let mut text = String::new();
    let length = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    let length = length.map_err(|error| wrong(&error.to_string()))?;
    match text.trim() {
        "" => Err(wrong("is empty")),
        _ if length as u64 > LONGEST => Err(wrong("is longer than 8 KiB, the limit for a secret")),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    #[tokio::test]
    async fn a_secret_is_read_without_its_line_break_and_never_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| fs::write(file.path(), text).unwrap();
        assert!(read(file.path()).await.unwrap_err().ends_with("is empty"));
        write("key\n");
        assert_eq!(read(file.path()).await.as_deref(), Ok("key"));
        write(&"x".repeat(9_000));
        assert!(!read(file.path()).await.unwrap_err().contains("xxx"));
        fs::write(file.path(), b"xxx\xff").unwrap();
        assert!(!read(file.path()).await.unwrap_err().contains("xxx"));
        assert!(read(Path::new("/nowhere/key")).await.is_err());
        assert!(read(file.path().parent().unwrap()).await.unwrap_err().ends_with("is not a regular file"));
    }

    #[tokio::test]
    async fn a_file_that_others_read_or_could_exchange_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("token"), folder.path().join("link"));
        fs::write(&path, "key").unwrap();
        let set = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        for (mode, advice) in [(0o644, "chmod o= it"), (0o602, "chmod o-w it")] {
            set(mode);
            let why = read(&path).await.unwrap_err();
            assert!(why.contains(advice) && why.contains("token"), "{why}");
        }
        set(0o640);
        assert_eq!(read(&path).await.as_deref(), Ok("key"));
        symlink(&path, &link).unwrap();
        assert_eq!(read(&link).await.as_deref(), Ok("key"), "one's own link");
        if allclear_files::own_uid() != 0 {
            return;
        }
        std::os::unix::fs::lchown(&link, Some(64_218), None).unwrap();
        assert!(read(&link).await.unwrap_err().contains("link belongs to uid 64218"));
        chown(&path, Some(64_218), None).unwrap();
        assert!(read(&path).await.unwrap_err().contains("belongs to uid 64218"));
        assert_eq!(read_for(&path, 64_218).await.as_deref(), Ok("key"), "whose it is reads it");
    }
}
