//! The question before an approval at a terminal: what is skipped, and which primary goes down.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::output::{sentence, summary};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Whether a person can answer.
pub(super) fn is_answerable() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and returns whether the answer is yes.
pub(super) fn is_confirmed(event: &shown::Event, status: &shown::Status) -> bool {
    let mut terminal = std::io::stderr().lock();
    let asked = write!(terminal, "{}Approve it now? [y/N] ", consequences(event, status));
    if asked.and_then(|()| terminal.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).is_ok_and(|_| is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn consequences(event: &shown::Event, status: &shown::Status) -> String {
    let mut text = format!("{}\n", summary(event));
    if let Some(blocker) = &event.blocker {
        let _ = writeln!(text, "It waits: {}", sentence(&blocker.message));
        if !blocker.hooks.is_empty() {
            let _ = writeln!(text, "An approval skips what is left of: {}", sentence(&blocker.hooks.join(", ")));
        }
    }
    let is_named = |vm: &str| event.resources.iter().any(|named| named.eq_ignore_ascii_case(vm));
    for primary in status.workloads.iter().filter(|workload| workload.role == "primary" && is_named(&workload.vm)) {
        let group = primary.group.as_ref().unwrap_or(&primary.name);
        let _ =
            writeln!(text, "{}", sentence(&format!("{} holds the primary of {group}, which goes down.", primary.vm)));
    }
    text.push_str("Azure may start the event at once, and nobody can take the approval back.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_and_the_hooks_that_are_skipped_are_told() {
        let blocker = shown::Blocker {
            message: "the failover hook of pg on db-0 failed: no standby".into(),
            hooks: vec!["db-0/pg/failover".into()],
            ..Default::default()
        };
        let event = shown::Event { resources: vec!["DB-0".into()], blocker: Some(blocker), ..Default::default() };
        let workload = |vm: &str, role: &str| shown::Workload {
            name: "pg".into(),
            group: Some("orders-db".into()),
            vm: vm.into(),
            role: role.into(),
            ..Default::default()
        };
        let workloads = vec![workload("db-0", "primary"), workload("db-1", "replica"), workload("db-10", "primary")];
        let told = consequences(&event, &shown::Status { workloads, ..Default::default() });
        for line in ["no standby", "skips what is left of: db-0/pg/failover", "db-0 holds the primary of orders-db"] {
            assert!(told.contains(line), "{line}: {told}");
        }
        assert!(!told.contains("db-1 ") && !told.contains("db-10"), "{told}");
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(["y\n", "Y", " yes \n", "YES"].iter().all(|answer| is_yes(answer)));
        assert!(["", "\n", "n", "no", "yep", "y y"].iter().all(|answer| !is_yes(answer)));
    }
}
