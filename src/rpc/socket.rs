//! Serving gRPC on a Unix socket.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;

#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("another process serves {}; stop it or configure another path", path.display())]
    InUse { path: PathBuf },
    #[error("cannot serve {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Binds the socket for its owner and, with `mode`, for others. One that nobody serves any more is replaced.
pub fn bind(path: &Path, mode: u32) -> Result<UnixListener, SocketError> {
    let failed = |source| SocketError::Io { path: path.into(), source };
    if UnixStream::connect(path).is_ok() {
        return Err(SocketError::InUse { path: path.into() });
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
            std::fs::remove_file(path).map_err(failed)?;
        }
        Ok(_) => return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a socket"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(failed)?;
            }
        }
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
    Ok(listener)
}

/// Serves until it is stopped; open calls are waited for, so every stream ends when it is told to stop.
pub async fn serve(
    listener: UnixListener,
    routes: Routes,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let incoming = UnixListenerStream::new(listener);
    Server::builder().add_routes(routes).serve_with_incoming_shutdown(incoming, stop.cancelled()).await
}
