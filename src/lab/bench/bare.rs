//! Lower bounds for every program that writes and queries: synced writes, and round trips on loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::figure::ms;

/// About one entry of the log.
const ENTRY_BYTES: usize = 200;
/// An operation after a pause costs several times as much, because the caches are cold.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause of a replica while an event is open and the replica has only to poll.
const LONG_PAUSE: Duration = Duration::from_millis(50);

/// One synced write and two round trips, each time after a pause and in milliseconds.
pub(super) async fn synced_and_answered(folder: &Path, times: u32) -> anyhow::Result<Vec<f64>> {
    let mut line = EchoPeer::new()?;
    let mut file = std::fs::File::create(folder.join("floor"))?;
    let mut spans = Vec::new();
    for _ in 0..times {
        sleep(LONG_PAUSE).await;
        let began = Instant::now();
        file.write_all(&[0; ENTRY_BYTES])?;
        file.sync_data()?;
        line.there_and_back()?;
        line.there_and_back()?;
        spans.push(ms(began.elapsed()));
    }
    Ok(spans)
}

/// A connection to an echo thread, which has to be woken for each message, like another replica.
pub(super) struct EchoPeer(TcpStream);

impl EchoPeer {
    pub(super) fn new() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        let (mut far, _) = listener.accept()?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        // Ends with this end of the connection.
        thread::Builder::new().spawn(move || {
            let mut bytes = [0; ENTRY_BYTES];
            while far.read_exact(&mut bytes).and_then(|()| far.write_all(&bytes)).is_ok() {}
        })?;
        Ok(Self(near))
    }

    pub(super) fn there_and_back(&mut self) -> std::io::Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        self.0.write_all(&bytes)?;
        self.0.read_exact(&mut bytes)
    }
}
