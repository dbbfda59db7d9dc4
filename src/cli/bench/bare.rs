//! What nothing that writes and asks can get below: synced writes, round trips on loopback, and calls of a replica.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::time::sleep;

use super::figure::ms;
use crate::rpc::client::{AskError, Asking};

/// About one entry of the log.
const ENTRY_BYTES: usize = 200;
/// What comes after a pause costs several times as much: nothing is in the caches any more.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// As replicas have one at most while an event is open and they have nothing to do but to look.
pub(super) const LONG_PAUSE: Duration = Duration::from_millis(50);

/// One synced write and so many round trips, as often, each after such a pause and in milliseconds.
pub(super) async fn synced_and_answered(
    folder: &Path,
    times: u32,
    trips: u32,
    pause: Duration,
) -> anyhow::Result<Vec<f64>> {
    let mut line = Line::new()?;
    let mut file = std::fs::File::create(folder.join("floor"))?;
    let mut spans = Vec::new();
    for _ in 0..times {
        sleep(pause).await;
        let began = Instant::now();
        file.write_all(&[0; ENTRY_BYTES])?;
        file.sync_data()?;
        for _ in 0..trips {
            line.there_and_back()?;
        }
        spans.push(ms(began.elapsed()));
    }
    Ok(spans)
}

/// Calls of a replica over gRPC that it answers from its memory, and beside each a round trip; each after a pause and in
/// milliseconds.
pub(super) async fn called_and_answered(replica: &Path, times: u32) -> anyhow::Result<[Vec<f64>; 2]> {
    let (mut asking, mut line) = (Asking::connect(replica).await?, Line::new()?);
    let (mut calls, mut trips) = (Vec::new(), Vec::new());
    for _ in 0..times {
        sleep(PAUSE).await;
        let began = Instant::now();
        let answer = asking.event("of nobody").await;
        calls.push(ms(began.elapsed()));
        ensure!(matches!(answer, Err(AskError::NotFound(_))), "a replica tells of an event that nobody announced");
        sleep(PAUSE).await;
        let began = Instant::now();
        line.there_and_back()?;
        trips.push(ms(began.elapsed()));
    }
    Ok([calls, trips])
}

/// To somebody who only sends back what comes, and who has to be woken for it, as another replica has.
pub(super) struct Line(TcpStream);

impl Line {
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
