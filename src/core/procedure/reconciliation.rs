//! The reconciliation of the journal: reports to the log which events this replica approved without a quorum.

use super::Host;
use crate::disk_loss::{Since, may_account_for_lost_disk};
use crate::isolation::reconciliation::{is_entry_needed, reconciliation_due};
use crate::model::command::Command;
use crate::model::isolated_approval::JournalEntry;
use core::time::Duration;

const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Requirements of the reconciliation for the host, beside [`Host`].
#[allow(async_fn_in_trait, reason = "as in `Host`")]
pub trait JournalHost: Host {
    type Changes;

    /// The changes of the state, the journal and the quorum that this replica has seen so far.
    fn changes(&self) -> Self::Changes;

    /// Waits until the state, the journal or the quorum has changed since, or for `at_most`.
    async fn wait(&self, changes: Self::Changes, at_most: Option<Duration>);

    /// A quorum takes proposals.
    fn may_reconcile(&self) -> bool;

    /// Age of the document of the last poll; `None` before the first poll.
    fn document_age(&self) -> Option<Duration>;

    /// A lost disk still votes under this replica's name.
    fn has_former_vote(&self) -> bool;

    /// The journal was created by this run, or by a previous run that did not mark the journal as complete.
    fn is_journal_new(&self) -> bool;

    /// Marks a new journal as complete, on the disk.
    async fn keep_journal(&self);

    /// A previous run had registered; `None` until this run has caught up.
    fn is_known(&self) -> Option<bool>;

    /// Removes entries that are no longer needed.
    async fn prune_journal(&self, is_needed: impl Fn(&JournalEntry) -> bool);

    /// Reads the journal while no entry is written.
    async fn read_journal<T>(&self, read: impl FnOnce(&[JournalEntry]) -> T) -> T;

    /// Proposes a command to the leader. The caller proposes again after a failure.
    async fn propose(&self, command: &Command);
}

/// Reconciles the journal with the log for as long as the host runs.
pub async fn reconcile_journal<H: JournalHost>(host: &H) {
    wait_for_former_approvals(host).await;
    loop {
        let changes = host.changes();
        let is_owed = host.may_reconcile() && reconcile_now(host).await;
        host.wait(changes, is_owed.then_some(AGAIN_AFTER)).await;
    }
}

/// Waits, on a new disk of a known replica, until approvals possibly recorded in the lost journal have become visible.
async fn wait_for_former_approvals<H: JournalHost>(host: &H) {
    if !host.is_journal_new() {
        return;
    }
    let began = host.monotonic();
    loop {
        let may_end = match host.is_known() {
            None => false,
            Some(false) => true,
            Some(true) => {
                let document = host.trusted_document();
                let since = Since {
                    runs_for: host.monotonic().since(began),
                    document: document.as_ref().zip(host.document_age()),
                    has_former_vote: host.has_former_vote(),
                };
                may_account_for_lost_disk(&host.state(), host.name(), host.timing(), &since)
            }
        };
        if may_end {
            return host.keep_journal().await;
        }
        host.sleep(AGAIN_AFTER).await;
    }
}

/// True while the log does not have the whole journal.
async fn reconcile_now<H: JournalHost>(host: &H) -> bool {
    let state = host.state();
    host.prune_journal(|entry| is_entry_needed(&state, entry)).await;
    let due = host.read_journal(|journal| reconciliation_due(&host.state(), host.name(), journal)).await;
    match due {
        Some(command) => {
            host.propose(&command).await;
            true
        }
        None => false,
    }
}
