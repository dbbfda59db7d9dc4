//! Noticing that one was removed: nobody sends the log to a replica that is no member any more, so one that hears no
//! leader asks those who vote whether they have one without it.

use std::time::Duration;

use tokio::time::sleep;

use super::node::Consensus;
use super::types::lineage;

const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Consensus {
    /// Runs until this replica stops. Only says what is; nothing hangs on it.
    pub(crate) async fn watch_for_removal(self) {
        loop {
            sleep(LOOK_EVERY).await;
            let Ok(formed) = self.stored_membership().await else { return };
            if formed.is_none() {
                // Formation says why.
                continue;
            }
            if self.leader_heard().is_some() {
                self.outside.send_replace(None);
            } else if let Some((membership, _)) = self.led_as_voters_say().await
                && membership.get_node(&self.identity.node).is_none()
            {
                let (replica, address) = (&self.identity.replica, self.own_address());
                if lineage(&membership) != lineage(&self.membership()) {
                    self.stay_outside(&format!(
                        "the cluster was restored from one disk without this one, whose entries must not mix with \
                         it; stop {replica}, empty its data_dir and start it again"
                    ));
                    continue;
                }
                self.stay_outside(&format!(
                    "the cluster goes on without {replica}, which was removed; stop it, or bring it back with \
                     `allclear member add {replica} {address}`"
                ));
            }
        }
    }
}
