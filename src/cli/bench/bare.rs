//! What nothing that writes and asks can get below: synced writes, and round trips on loopback.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::figure::ms;

/// About one entry of the log.
const ENTRY_BYTES: usize = 200;

/// One synced write and so many round trips, as often, each in milliseconds.
pub(super) async fn synced_and_answered(folder: &Path, times: u32, trips: u32) -> anyhow::Result<Vec<f64>> {
    let mut line = Line::new().await?;
    let mut file = std::fs::File::create(folder.join("floor"))?;
    let mut spans = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        file.write_all(&[0; ENTRY_BYTES])?;
        file.sync_data()?;
        for _ in 0..trips {
            line.there_and_back().await?;
        }
        spans.push(ms(began.elapsed()));
    }
    Ok(spans)
}

/// Both ends of a connection.
pub(super) struct Line {
    near: TcpStream,
    far: TcpStream,
}

impl Line {
    pub(super) async fn new() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let near = TcpStream::connect(listener.local_addr()?).await?;
        let (far, _) = listener.accept().await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        Ok(Self { near, far })
    }

    pub(super) async fn there_and_back(&mut self) -> std::io::Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        self.near.write_all(&bytes).await?;
        self.far.read_exact(&mut bytes).await?;
        self.far.write_all(&bytes).await?;
        self.near.read_exact(&mut bytes).await?;
        Ok(())
    }
}
