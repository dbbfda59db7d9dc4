//! The state of an attempt, by its folder alone.

use std::fs::File;

use crate::hooks::command::attempt_files::{OutcomeRecord, RunRecord, StartRecord};
use crate::hooks::command::process;
use crate::hooks::command::spool::Folder;

/// The state of an attempt's folder.
pub(in crate::hooks::command) enum FolderState {
    Ended(OutcomeRecord),
    /// The supervisor is alive.
    Running,
    /// Nothing was run, for certain. The holder of the lock may remove the folder.
    NeverBegun {
        complaint: String,
        lock: File,
    },
    /// The hook may have run, and no process is left with knowledge of the outcome. The lock keeps this state until the
    /// attempt is settled.
    Lost {
        reason: String,
        lock: Option<File>,
    },
}

/// Reads a folder without trusting the content.
pub(in crate::hooks::command) fn look(folder: &Folder) -> FolderState {
    if let Ok(Some(outcome)) = folder.read() {
        return FolderState::Ended(outcome);
    }
    let lock = match folder.lock() {
        Ok(Some(lock)) => lock,
        Ok(None) => return FolderState::Running,
        Err(error) => return FolderState::Lost { reason: error.to_string(), lock: None },
    };
    // A second read: the attempt may have ended in between.
    let lost = |reason: &str, lock| FolderState::Lost { reason: reason.to_owned(), lock: Some(lock) };
    let (outcome, request, mark) = (folder.read(), folder.read(), folder.read::<StartRecord>());
    let is_elsewhere = |request: &RunRecord| request.place != process::place();
    match (outcome, request, mark) {
        (Ok(Some(outcome)), ..) => FolderState::Ended(outcome),
        // A power cut leaves the request of a started attempt, and the other files perhaps missing or incomplete.
        (_, Ok(Some(request)), _) if is_elsewhere(&request) => {
            lost("the VM or its container restarted while the hook ran", lock)
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => lost(&error.to_string(), lock),
        (_, _, Ok(None)) => FolderState::NeverBegun { complaint: folder.complaint(), lock },
        (_, Ok(Some(_)), Ok(Some(_))) => {
            let complaint = folder.complaint();
            let reason = if complaint.is_empty() {
                "the supervisor of the hook was killed while the hook ran"
            } else {
                &complaint
            };
            lost(reason, lock)
        }
        (_, Ok(None), Ok(Some(_))) => lost("the request of the hook is missing", lock),
    }
}
