//! Termination signals: Ctrl-C, `kill`, and a terminal that closes.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for the first signal to stop this process; the signals are caught from this call on.
pub fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}
