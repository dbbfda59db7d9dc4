//! The questions at a terminal before a command with which a primary may go down.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::output::{blockers, sentence, summary};
use allclear_server::replica::view::{going_down, primaries};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Whether a person can answer.
pub(super) fn is_answerable() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and returns whether the answer is yes.
pub(super) fn is_confirmed(event: &shown::Event) -> bool {
    is_yes(&format!("{}Approve it now? [y/N] ", consequences(event)))
}

/// Asks before a command after which these primaries of events go down, and returns whether the answer is yes.
pub(super) fn is_accepted(events: &[&(shown::Event, Vec<String>)], question: &str) -> bool {
    let told: String = events.iter().map(|(event, unmoved)| what_goes_down(event, unmoved)).collect();
    is_yes(&format!("{told}{question} [y/N] "))
}

/// Prints the question, and returns whether the answer is yes.
pub(super) fn is_yes(question: &str) -> bool {
    let mut terminal = std::io::stderr().lock();
    let asked = terminal.write_all(question.as_bytes());
    if asked.and_then(|()| terminal.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).is_ok_and(|_| means_yes(&answer))
}

fn means_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn what_goes_down(event: &shown::Event, unmoved: &[String]) -> String {
    let mut text = waits(event);
    if let Some(primary) = going_down(unmoved) {
        let _ = writeln!(text, "{}.", sentence(&primary));
    }
    text.push_str(
        "Then no failover is left that moves it. Azure starts the event after the approval, or when the notice ends.\n",
    );
    text
}

/// The event and its blockers.
fn waits(event: &shown::Event) -> String {
    let mut text = format!("{}\n", summary(event));
    for blocker in blockers(event) {
        let _ = writeln!(text, "It waits: {}", sentence(&blocker.message));
    }
    text
}

fn consequences(event: &shown::Event) -> String {
    let mut text = waits(event);
    let waiting = blockers(event).filter(|blocker| !is_failover_running(blocker));
    let hooks: Vec<&str> = waiting.flat_map(|blocker| &blocker.hooks).map(String::as_str).collect();
    if !hooks.is_empty() {
        let _ = writeln!(text, "An approval skips what is left of: {}", sentence(&hooks.join(", ")));
    }
    if blockers(event).any(is_failover_running) {
        text.push_str("The failover that runs may end first, within its deadline; `allclear skip` would stop it.\n");
    }
    text.push_str("Hooks that have not begun do not run.\n");
    for primary in primaries(event) {
        let _ = writeln!(text, "{}, which goes down.", sentence(&primary));
    }
    text.push_str("Azure may start the event at once, and nobody can take the approval back.\n");
    text
}

fn is_failover_running(blocker: &shown::Blocker) -> bool {
    let is_failover = |hook: &String| hook.split('/').nth(2).is_some_and(|phase| phase.starts_with("failover"));
    blocker.code == "hook_running" && blocker.hooks.iter().any(is_failover)
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
        let down = |vm: &str, role: &str| shown::TakenDown {
            workload: "pg".into(),
            group: Some("orders-db".into()),
            vm: vm.into(),
            role: role.into(),
            ..Default::default()
        };
        let takes_down = vec![down("db-0", "primary"), down("db-1", "replica")];
        let event = shown::Event { takes_down, blocker: Some(blocker), ..Default::default() };
        let told = consequences(&event);
        for line in
            ["no standby", "skips what is left of: db-0/pg/failover", "db-0 holds the primary of orders-db, which"]
        {
            assert!(told.contains(line), "{line}: {told}");
        }
        assert!(!told.contains("db-1") && !told.contains("may end first"), "{told}");
    }

    #[test]
    fn a_primary_that_no_failover_moves_is_told_before_the_question() {
        let event = shown::Event { id: "e".into(), ..Default::default() };
        let told = what_goes_down(&event, &["db-0 holds the primary of orders-db".into()]);
        assert!(told.contains("\ndb-0 holds the primary of orders-db, which is NOT moved and goes down.\n"), "{told}");
    }

    #[test]
    fn a_running_failover_is_not_said_to_be_skipped() {
        let told = |hook: &str| {
            let blocker =
                shown::Blocker { code: "hook_running".into(), hooks: vec![hook.into()], ..Default::default() };
            consequences(&shown::Event { blocker: Some(blocker), ..Default::default() })
        };
        assert!(told("db-0/pg/failover#move").contains("may end first"));
        assert!(!told("db-0/failover/drain").contains("may end first"));
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(["y\n", "Y", " yes \n", "YES"].iter().all(|answer| means_yes(answer)));
        assert!(["", "\n", "n", "no", "yep", "y y"].iter().all(|answer| !means_yes(answer)));
    }
}
