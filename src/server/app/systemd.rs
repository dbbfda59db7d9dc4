//! Notifies systemd (`Type=notify`, `WatchdogSec=`) of the replica's readiness, of its running loops, and of its end.
//! Without systemd nothing is sent.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::replica::watchdog::Loop;

/// Watchdog notifications per expected notification, since some may be late.
const SIGNS_PER_EXPECTED: u32 = 4;

/// Notifies readiness, and then the watchdog for as long as no loop is stuck.
pub(super) async fn keep_told(standstill: impl Fn() -> Option<Loop>) {
    tell(NotifyState::Ready);
    let Some(expected) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    give_signs(expected / SIGNS_PER_EXPECTED, standstill, || tell(NotifyState::Watchdog)).await;
}

pub(super) fn tell_of_the_end() {
    tell(NotifyState::Stopping);
}

/// Notifies the watchdog; never returns.
async fn give_signs(every: Duration, standstill: impl Fn() -> Option<Loop>, give: impl Fn()) {
    let mut told = None;
    loop {
        let stuck = standstill();
        match stuck {
            None => give(),
            Some(stuck) if told != Some(stuck) => {
                tracing::error!(r#loop = stuck.as_str(), "loop stalled: restart requested from the service manager");
            }
            Some(_) => {}
        }
        told = stuck;
        tokio::time::sleep(every).await;
    }
}

fn tell(what: NotifyState) {
    if let Err(error) = sd_notify::notify(&[what]) {
        tracing::warn!(%error, "service manager not notified");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_are_given_for_as_long_as_nothing_stands_still() {
        let (given, stuck) = (Cell::new(0), Cell::new(None));
        let signs = give_signs(Duration::from_secs(1), || stuck.get(), || given.set(given.get() + 1));
        let life = async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            assert_eq!(given.get(), 3);
            stuck.set(Some(Loop::Poll));
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert_eq!(given.get(), 3, "a replica that stands still gives none");
            stuck.set(None);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(given.get(), 5);
        };
        tokio::select! {
            () = signs => {}
            () = life => {}
        }
    }
}
