//! "Why not yet?" in sentences: what the event waits for, what happens next by itself and when, and who can resolve it.

use std::fmt::Write as _;

use crate::machine::blocker::Blocker;
use crate::machine::event::Event;
use crate::machine::id::VmName;
use crate::machine::operator::{Halt, unaware};
use crate::machine::situation::Situation;
use crate::machine::state::State;
use crate::machine::takeover::{Obstacle, Outlook};
use crate::machine::time::Timestamp;
use crate::machine::veto::vetoes;
use crate::replica::clock::rfc3339;
use crate::wire::pb::allclear::operator::v1 as shown;

/// Of the hooks that hold an event beside the first, so many are told.
const MOST_VETOES: usize = 3;

pub fn shown(blocker: &Blocker, event: &Event, state: &State, situation: &Situation) -> shown::Blocker {
    let unaware = |number| unaware(state, situation, number);
    let Sentences { mut message, until, next, resolved_by } = sentences(blocker, event, unaware);
    let mut hooks: Vec<String> = hook_of(blocker).into_iter().collect();
    if blocker.code().starts_with("hook_") {
        let others: Vec<_> = vetoes(state, event, situation.now).into_iter().filter(|veto| veto != blocker).collect();
        for other in others.iter().take(MOST_VETOES) {
            let _ = write!(message, "; {}", sentences(other, event, unaware).message);
        }
        if others.len() > MOST_VETOES {
            let _ = write!(message, "; and {} more", others.len() - MOST_VETOES);
        }
        hooks.extend(others.iter().filter_map(hook_of).filter(|other| !hooks.contains(other)).collect::<Vec<_>>());
    }
    let next = match blocker {
        Blocker::Deciding | Blocker::HookFailed { .. } if event.is_drill() => {
            "the drill ends, and what it took away is put back".into()
        }
        _ => next,
    };
    shown::Blocker {
        code: blocker.code().into(),
        message,
        until: until.map(rfc3339),
        next,
        resolved_by: resolved_by.into(),
        hooks,
    }
}

/// The hook that it waits for, as operators call it.
fn hook_of(blocker: &Blocker) -> Option<String> {
    match blocker {
        Blocker::HookWaiting { member, hook, .. }
        | Blocker::HookRunning { member, hook, .. }
        | Blocker::HookBlocked { member, hook, .. }
        | Blocker::WorkloadAway { member, hook, .. }
        | Blocker::HookFailed { member, hook, .. } => Some(hook.named(member)),
        _ => None,
    }
}

struct Sentences {
    message: String,
    until: Option<Timestamp>,
    next: String,
    resolved_by: &'static str,
}

impl Sentences {
    fn new(message: String, until: Option<Timestamp>, next: impl Into<String>, resolved_by: &'static str) -> Self {
        Self { message, until, next: next.into(), resolved_by }
    }
}

fn sentences(blocker: &Blocker, event: &Event, unaware: impl Fn(u64) -> Vec<VmName>) -> Sentences {
    let notice_ends = Some(event.notice_ends());
    let tell = |message, until, next: &str, resolved_by| Sentences::new(message, until, next, resolved_by);
    match blocker {
        Blocker::Deciding => {
            let message = "the leader is about to decide what to do".into();
            tell(message, None, "the leader decides within a moment", "nobody needs to")
        }
        Blocker::Observing => {
            let message = "policy leaves this event to others".into();
            let resolved_by =
                "an operator, who may approve it, or whoever else it is left to; later ones: a policy rule";
            tell(message, notice_ends, "the platform starts the event when its notice ends", resolved_by)
        }
        Blocker::TooEarly { starts_at } => {
            let message = format!("the notice is long: preparation starts at {}", rfc3339(*starts_at));
            let resolved_by = "an operator, who may approve it now; for later ones policy.prepare_ahead";
            tell(message, Some(*starts_at), "preparation starts", resolved_by)
        }
        Blocker::HookWaiting { .. }
        | Blocker::HookRunning { .. }
        | Blocker::HookBlocked { .. }
        | Blocker::WorkloadAway { .. }
        | Blocker::HookFailed { .. } => of_hook(blocker, event),
        Blocker::Budget { group, by, notice_ends } => {
            let by: Vec<String> = by.iter().map(ToString::to_string).collect();
            let message = format!("{group} may not lose more members before these are back: {}", by.join(", "));
            let next = "approved when they are back; the platform starts the event when its notice ends all the same";
            tell(message, Some(*notice_ends), next, "whoever runs the machines: bring those back")
        }
        Blocker::Hold(halt) => halted(halt, "it is held", "an operator, with allclear release", &unaware(halt.number)),
        Blocker::Paused(halt) => {
            halted(halt, "all approvals are paused", "an operator, with allclear resume", &unaware(halt.number))
        }
        Blocker::NoHealthyChannel => {
            let message = "no replica that sees the event has a working metadata endpoint".into();
            tell(
                message,
                notice_ends,
                "approved as soon as one works again; the platform starts the event when its notice ends all the same",
                "whoever runs the machines",
            )
        }
        Blocker::NoQuorum { takeover } => no_quorum(takeover.as_ref(), event),
        Blocker::Posting { approver, since } => {
            let message = format!("{approver} posts the approval since {}", rfc3339(*since));
            tell(message, None, "another replica is named if it does not answer", "nobody needs to")
        }
        Blocker::PostFailed { approver, outcome, at } => {
            let message = format!("the approval posted by {approver} at {} was not accepted: {outcome}", rfc3339(*at));
            tell(message, None, "it is posted again, by another replica if there is one", "nobody needs to")
        }
        Blocker::WaitingForPlatform { since } => {
            let message = format!("approved since {}; the platform has not started the event yet", rfc3339(*since));
            tell(
                message,
                notice_ends,
                "other tenants may hold the host; the platform starts the event, at the latest when its notice ends",
                "the platform",
            )
        }
    }
}

fn of_hook(blocker: &Blocker, event: &Event) -> Sentences {
    // What `until` is the time of stands last.
    let first = event.budget_ends().map_or_else(String::new, |ends| {
        format!("approved at {} in any case, because somebody asked for the event; before that ", rfc3339(ends))
    });
    match blocker {
        Blocker::HookRunning { member, hook, on, deadline, expected_end, .. } => {
            let message = format!("the {} hook of {member} runs on {on}", hook.phase);
            let next = match expected_end {
                Some(_) => format!("{first}the hook is stopped at {}, and expects to end", rfc3339(*deadline)),
                None => format!("{first}the hook ends, or is stopped at its deadline"),
            };
            Sentences::new(
                message,
                Some(expected_end.unwrap_or(*deadline)),
                next,
                "the hook, or an operator who skips it",
            )
        }
        Blocker::HookBlocked { member, hook, reason, retry_at } => {
            let message = format!("the {} hook of {member} asks for patience: {reason}", hook.phase);
            let next = format!("{first}the hook is tried again");
            Sentences::new(message, Some(*retry_at), next, "the owner of the workload, or an operator who skips it")
        }
        Blocker::WorkloadAway { member, hook, since, notice_ends } => {
            let (phase, since) = (hook.phase, rfc3339(*since));
            let message = format!("the {phase} hook of {member} waits: the workload is not connected since {since}");
            let next = format!("{first}it is run when the workload dials in again; the notice ends");
            Sentences::new(message, Some(*notice_ends), next, "the owner of the workload, or an operator who skips it")
        }
        Blocker::HookFailed { member, hook, reason, notice_ends } => {
            let message = format!("the {} hook of {member} failed: {reason}", hook.phase);
            let next = "no approval from here; the platform starts the event when its notice ends";
            let resolved_by = "an operator who skips it or approves; the owner of the workload for later events";
            Sentences::new(message, Some(*notice_ends), next, resolved_by)
        }
        Blocker::HookWaiting { member, hook, from } => {
            let message = format!("the {} hook of {member} has yet to run", hook.phase);
            let next = format!("{first}the hook is started when its turn comes and its replica answers");
            Sentences::new(message, Some(*from), next, "nobody needs to")
        }
        _ => Sentences::new(blocker.code().into(), None, "", ""),
    }
}

/// What an operator does not want yet, and who may not know of it.
fn halted(halt: &Halt, what: &str, resolved_by: &'static str, unaware: &[VmName]) -> Sentences {
    let names: Vec<String> = unaware.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    let message = if names.is_empty() {
        format!("{what} {halt}")
    } else {
        format!("{what} {halt}; not acknowledged yet by {names}: cut off, it may approve alone what a user asked for")
    };
    let next = "the platform starts the event when its notice ends all the same; no approval from here before";
    Sentences::new(message, Some(halt.until), next, resolved_by)
}

/// What becomes of an event without a quorum.
const ON_ITS_OWN: &str = "goes on when a quorum is back; the platform starts the event when its notice ends";

/// Rung 4: what this replica does alone, if nobody comes back before.
fn no_quorum(takeover: Option<&Outlook>, event: &Event) -> Sentences {
    let resolved_by = "whoever runs the machines: bring replicas or the network back";
    let message = "too few replicas can reach each other to decide anything";
    match takeover {
        Some(Outlook::From(at)) => {
            let next = "this replica approves the event alone, unless a quorum is back before";
            Sentences::new(message.into(), Some(*at), next, resolved_by)
        }
        Some(Outlook::Not(obstacle)) => {
            let message = format!("{message}, and this replica does not approve it alone: {obstacle}");
            let (until, next) = match obstacle {
                Obstacle::Held(halt) | Obstacle::Paused(halt) => {
                    (halt.until, "goes on when a quorum is back; this replica looks at it anew when that ends")
                }
                _ => (event.notice_ends(), ON_ITS_OWN),
            };
            Sentences::new(message, Some(until), next, resolved_by)
        }
        None => Sentences::new(message.into(), Some(event.notice_ends()), ON_ITS_OWN, resolved_by),
    }
}
