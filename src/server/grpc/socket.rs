//! Unix sockets with their modes.

use std::fs::{DirBuilder, File, Permissions, symlink_metadata};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use tokio::net::{UnixListener, UnixSocket, UnixStream};

use crate::files;

/// Connections waiting to be accepted.
const BACKLOG: u32 = 1024;

#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("another process serves {}; stop that process or configure another path", path.display())]
    InUse { path: PathBuf },
    #[error("{} exists and is {what}; remove the file or configure another path", path.display())]
    Taken { path: PathBuf, what: &'static str },
    #[error("cannot serve {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Binds the socket with exactly this mode. Replaces a socket without a server.
pub async fn bind(path: &Path, mode: u32) -> Result<UnixListener, SocketError> {
    let failed = |source| SocketError::Io { path: path.into(), source };
    make_way(path).await?;
    if let Some(Err(why)) = path.parent().map(files::check_way) {
        tracing::warn!(socket = %path.display(), %why, "socket replaceable by other users");
    }
    made(path, mode).and_then(|socket| socket.listen(BACKLOG)).map_err(failed)
}

/// Removes an abandoned socket, so that the path is free afterwards.
async fn make_way(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Io { path: path.into(), source };
    let taken = |what| Err(SocketError::Taken { path: path.into(), what });
    match symlink_metadata(path) {
        Ok(found) if found.is_symlink() => taken("a symbolic link"),
        Ok(found) if !found.file_type().is_socket() => taken("not a socket"),
        Ok(_) => match UnixStream::connect(path).await {
            // Only a refused connection proves an abandoned socket: a hung server has a full backlog, and another
            // user's socket denies access.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(failed)
            }
            Ok(_) => Err(SocketError::InUse { path: path.into() }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(SocketError::InUse { path: path.into() }),
            Err(error) => Err(failed(error)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.parent() {
            Some(folder) => DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed),
            None => Ok(()),
        },
        Err(error) => Err(failed(error)),
    }
}

/// Makes the socket with its mode, independent of the umask, before `listen` allows the first connection.
fn made(path: &Path, mode: u32) -> io::Result<UnixSocket> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    // Not `OpenOptions`: with musl, it drops `O_PATH` from the flags, and no program can open a socket without.
    let itself = File::from(open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?);
    let found = itself.metadata()?;
    if !found.file_type().is_socket() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::other("another process replaced the path of this socket meanwhile"));
    }
    // By the opened file: the path may lead elsewhere by now.
    std::fs::set_permissions(format!("/proc/self/fd/{}", itself.as_raw_fd()), Permissions::from_mode(mode))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[tokio::test]
    async fn a_socket_has_its_mode_before_anybody_can_connect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        for wanted in [0o600, 0o660] {
            let socket = made(&path, wanted).unwrap();
            assert_eq!(mode(&path), wanted);
            let early = UnixStream::connect(&path).await.unwrap_err();
            assert_eq!(early.kind(), io::ErrorKind::ConnectionRefused, "{early}");
            let _listener = socket.listen(1).unwrap();
            UnixStream::connect(&path).await.unwrap();
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[tokio::test]
    async fn only_a_socket_that_nobody_serves_makes_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "kept").unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        symlink(path("file"), path("link")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        drop(bind(&path("dead"), 0o600).await.unwrap());
        symlink(path("dead"), path("link-to-dead")).unwrap();
        for (name, told) in [
            ("file", "not a socket"),
            ("folder", "not a socket"),
            ("link", "a symbolic link"),
            ("dangling", "a symbolic link"),
            ("link-to-dead", "a symbolic link"),
        ] {
            let before = symlink_metadata(path(name)).unwrap().ino();
            let refused = bind(&path(name), 0o600).await.unwrap_err().to_string();
            assert!(refused.contains(&format!("{name} exists and is {told}")), "{refused}");
            assert_eq!(symlink_metadata(path(name)).unwrap().ino(), before);
        }
        assert_eq!(std::fs::read_to_string(path("file")).unwrap(), "kept");
        assert!(!path("nowhere").exists());
        let live = bind(&path("dead"), 0o660).await.unwrap();
        assert_eq!(mode(&path("dead")), 0o660);
        assert!(matches!(bind(&path("dead"), 0o600).await, Err(SocketError::InUse { .. })));
        assert_eq!(mode(&path("dead")), 0o660);
        drop(live);
    }

    #[tokio::test]
    async fn a_process_that_hangs_still_serves_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _hangs = made(&path, 0o600).unwrap().listen(1).unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = UnixStream::connect(&path).await {
            waiting.push(stream);
            assert!(waiting.len() < 100, "it never fills");
        }
        assert!(matches!(bind(&path, 0o600).await, Err(SocketError::InUse { .. })));
    }
}
