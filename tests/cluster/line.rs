//! The connection between a workload and its replica, which can be cut, and on which a message can be caught.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub(crate) struct Line {
    trap: Trap,
    cuts: watch::Sender<u64>,
    serving: JoinHandle<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Towards {
    Workload,
    Replica,
}

/// A message held on the line. On drop the line breaks, and the message never arrives.
pub(crate) struct Caught(oneshot::Sender<()>);

type Trap = Arc<Mutex<Option<(Towards, String, oneshot::Sender<Caught>)>>>;

impl Line {
    /// The workload connects to `socket`, and reaches `door` whenever a replica serves `door`.
    pub(crate) fn between(socket: &Path, door: PathBuf) -> Self {
        let (trap, cuts) = (Trap::default(), watch::Sender::new(0));
        let listener = UnixListener::bind(socket).unwrap();
        let (set, cutting) = (trap.clone(), cuts.clone());
        let serving = tokio::spawn(async move {
            loop {
                let (workload, _) = listener.accept().await.unwrap();
                let (door, set, mut cut) = (door.clone(), set.clone(), cutting.subscribe());
                tokio::spawn(async move {
                    let Ok(replica) = UnixStream::connect(door).await else { return };
                    let (from_workload, to_workload) = workload.into_split();
                    let (from_replica, to_replica) = replica.into_split();
                    tokio::select! {
                        () = carry(from_workload, to_replica, Towards::Replica, &set) => {}
                        () = carry(from_replica, to_workload, Towards::Workload, &set) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { trap, cuts, serving }
    }

    /// Holds the next message in this direction with this text.
    pub(crate) fn catch(&self, towards: Towards, text: String) -> oneshot::Receiver<Caught> {
        let (caught, is_caught) = oneshot::channel();
        *self.trap.lock().unwrap() = Some((towards, text, caught));
        is_caught
    }

    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Caught {
    pub(crate) fn let_pass(self) {
        // the line may be cut
        let _ = self.0.send(());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Carries bytes until either end closes, or a caught message is dropped.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, towards: Towards, trap: &Trap) {
    // A text may begin in one piece and end in the next.
    let mut seen: Vec<u8> = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let Ok(length @ 1..) = from.read(&mut piece).await else { return };
        seen.extend(&piece[..length]);
        if let Some(wait) = is_caught(trap, towards, &seen, length)
            && wait.await.is_err()
        {
            return;
        }
        seen.drain(..seen.len().saturating_sub(256));
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

/// A text with its end before the last piece has passed already.
fn is_caught(trap: &Trap, towards: Towards, seen: &[u8], last: usize) -> Option<oneshot::Receiver<()>> {
    let mut trap = trap.lock().unwrap();
    let holds = |text: &str| {
        let begins = (seen.len() - last).saturating_sub(text.len() - 1);
        seen[begins..].windows(text.len()).any(|part| part == text.as_bytes())
    };
    let (_, _, tell) = trap.take_if(|(direction, text, _)| *direction == towards && holds(text))?;
    let (caught, wait) = oneshot::channel();
    // if no test waits for the message any more, the message passes
    tell.send(Caught(caught)).ok().map(|()| wait)
}
