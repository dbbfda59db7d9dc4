//! Removing the folders of forgotten attempts: one after the other, and done before the same attempt is begun anew.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::warn;

use super::aside::set_aside;
use super::attempt;
use super::runner::Shared;
use super::spool::Folder;

/// Attempts that are no longer known and whose folders may still be there.
#[derive(Default)]
pub(super) struct Leaving(watch::Sender<BTreeSet<String>>);

impl Leaving {
    pub(super) fn add(&self, attempt: String) {
        self.0.send_modify(|leaving| {
            leaving.insert(attempt);
        });
    }

    /// Waits until nothing is about to be removed under this id.
    pub(super) async fn is_over(&self, attempt: &str) {
        // Never fails: the sender is here.
        let _ = self.0.subscribe().wait_for(|leaving| !leaving.contains(attempt)).await;
    }

    async fn next(&self) -> Option<String> {
        self.0.subscribe().wait_for(|leaving| !leaving.is_empty()).await.ok()?.first().cloned()
    }

    fn remove(&self, attempt: &str) {
        self.0.send_modify(|leaving| {
            leaving.remove(attempt);
        });
    }
}

pub(super) async fn sweep(shared: Arc<Shared>) {
    while let Some(attempt) = shared.leaving.next().await {
        let (spool, leaving) = (shared.spool.clone(), attempt.clone());
        shared.disk.work(move || remove(&spool, &leaving)).await;
        shared.leaving.remove(&attempt);
    }
}

/// Only folders that made sense are removed.
fn remove(spool: &Path, attempt: &str) {
    let folder = Folder::of(spool, attempt);
    match folder.outcome() {
        Ok(Some(outcome)) if !outcome.broken => attempt::discard(&folder),
        Ok(None) if !folder.path().exists() => {}
        Ok(_) | Err(_) => match set_aside(spool, folder.path()) {
            Ok(aside) => warn!(attempt, aside = %aside.display(), "a broken folder of a hook is set aside"),
            Err(error) => warn!(attempt, %error, "a broken folder of a hook stays where it is"),
        },
    }
}
