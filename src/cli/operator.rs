//! `allclear hold`, `release`, `pause`, `resume`, `approve`, `retry` and `skip`: operators' requests about events. Any replica
//! accepts these commands.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Subcommand;

use super::approve;
use super::asker::Asker;
use super::query::Target;
use super::{Exit, examples, output};
use allclear_server::replica::clock::{from_rfc3339, rfc3339};
use allclear_server::replica::view::advice::runs_from;
use allclear_server::replica::view::{going_down, unmoved_primaries, unmoved_without};
use allclear_wire::pb::allclear::operator::v1::end::When;
use allclear_wire::pb::allclear::operator::v1::{self as shown, End};

#[derive(Subcommand)]
pub(super) enum OperatorCommand {
    /// Defers the approval of an event until a time
    ///
    /// The members of the event stay in service, or return to service, until shortly before Azure starts the event.
    #[command(after_help = examples::HOLD)]
    Hold {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        /// The end of the hold, at most 30 days ahead: 2h (from now), or 2026-01-31T12:00:00Z
        #[arg(long, value_name = "SPAN|TIME", value_parser = end)]
        until: End,
        /// Starts no hook either, not even shortly before Azure starts the event
        #[arg(long)]
        no_hooks: bool,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Ends the hold of an event
    #[command(after_help = examples::RELEASE)]
    Release {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        /// Does not ask, even if a primary goes down with the event
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Defers the approval of every event until a time
    ///
    /// No member leaves service until shortly before Azure starts the event.
    #[command(after_help = examples::PAUSE)]
    Pause {
        /// The end of the pause, at most 30 days ahead: 2h (from now), or 2026-01-31T12:00:00Z
        #[arg(long, value_name = "SPAN|TIME", value_parser = end)]
        until: End,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Ends the pause of all approvals
    #[command(after_help = examples::RESUME)]
    Resume {
        /// Does not ask, even if a primary goes down with an event
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Approves an event without the rest of the preparation, and stops running hooks; a running failover may end first
    ///
    /// With --alone, a replica without a quorum approves the event by itself.
    #[command(after_help = examples::APPROVE)]
    Approve {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        /// The event's revision in `allclear explain`; the command is refused if the event has changed since then. On a
        /// terminal, without this option, the command shows what an approval skips, and asks
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u64>,
        /// Approves the event without a quorum, on the queried replica. This replica follows no leader, runs no hooks,
        /// and cannot know which events the other replicas hold or approve
        #[arg(long)]
        alone: bool,
        /// Approves the event although other members of the groups are out of service; see `allclear workload list`
        #[arg(long, conflicts_with = "alone")]
        over_budget: bool,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Prepares an event ahead of its usual time, with all hooks; the event is approved when it is prepared
    #[command(after_help = examples::PREPARE)]
    Prepare {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        /// The start of the preparation: 2h (from now), or 2026-01-31T12:00:00Z [default: now]
        #[arg(long, value_name = "SPAN|TIME", value_parser = end)]
        at: Option<End>,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Runs a failed hook of an event again, once the cause of the failure is mended
    ///
    /// The hook has all its attempts again.
    #[command(after_help = examples::RETRY)]
    Retry(HookArguments),
    /// Stops waiting for one hook of an event; a running hook is stopped
    #[command(after_help = examples::SKIP)]
    Skip {
        #[command(flatten)]
        hook: HookArguments,
        /// Does not ask, even if a primary goes down with the event
        #[arg(long)]
        yes: bool,
    },
}

#[derive(clap::Args)]
pub(super) struct OperatorArguments {
    /// Your reason, kept in the log and shown with the event
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    asker: Asker,
    #[command(flatten)]
    target: Target,
}

/// One hook of an event.
#[derive(clap::Args)]
pub(super) struct HookArguments {
    /// The event's id
    #[arg(value_name = "EVENT")]
    event: String,
    /// The hook: WORKLOAD/PHASE or VM/WORKLOAD/PHASE; #2 at the end means the second hook of the phase
    #[arg(value_name = "HOOK")]
    hook: String,
    #[command(flatten)]
    asked: OperatorArguments,
}

impl OperatorCommand {
    pub(super) fn run(self) -> Result<(), Exit> {
        match self {
            Self::Hold { event, until, no_hooks, asked: OperatorArguments { reason, asker, target } } => {
                let what = format!("{event} is held");
                let request = shown::HoldRequest { event, until: Some(until), reason, no_hooks };
                let told = |held: &shown::HoldResponse| held_back(&what, held);
                target.change(&asker, async |client| client.hold(request).await, told)
            }
            Self::Release { event, yes, asked: OperatorArguments { reason, asker, target } } => {
                if !yes {
                    target.confirm_unmoved(&event, "Release it now?", unmoved_primaries)?;
                }
                let request = shown::ReleaseRequest { event, reason };
                let told = |released: &shown::ReleaseResponse| now("released", released.event.as_ref());
                target.change(&asker, async |client| client.release(request).await, told)
            }
            Self::Pause { until, asked: OperatorArguments { reason, asker, target } } => {
                let request = shown::PauseRequest { until: Some(until), reason };
                target.change(&asker, async |client| client.pause(request).await, paused)
            }
            Self::Resume { yes, asked: OperatorArguments { reason, asker, target } } => {
                if !yes {
                    target.confirm_resumed()?;
                }
                let request = shown::ResumeRequest { reason };
                target.change(&asker, async |client| client.resume(request).await, resumed)
            }
            Self::Approve {
                event,
                revision,
                alone,
                over_budget,
                asked: OperatorArguments { reason, asker, target },
            } => {
                let told = |approved: &shown::ApproveResponse| {
                    let waits = approved
                        .event
                        .iter()
                        .any(|event| event.blocker.as_ref().is_some_and(|it| it.code == "hook_running"));
                    let done = if alone { "approved without a quorum" } else { "approved" };
                    now(if waits { "accepted, and not posted yet" } else { done }, approved.event.as_ref())
                };
                let asks = revision.is_none() && !alone && approve::is_answerable();
                let revision = if asks { target.confirmed(&event)? } else { revision };
                let request = shown::ApproveRequest { event, revision, reason, alone, over_budget };
                target.change(&asker, async |client| client.approve(request).await, told)
            }
            Self::Prepare { event, at, asked: OperatorArguments { reason, asker, target } } => {
                let request = shown::PrepareRequest { event, at, reason };
                let told = |it: &shown::PrepareResponse| now("the preparation starts early", it.event.as_ref());
                target.change(&asker, async |client| client.prepare(request).await, told)
            }
            Self::Retry(HookArguments { event, hook, asked: OperatorArguments { reason, asker, target } }) => {
                let request = shown::RetryRequest { event, hook, reason };
                let told = |it: &shown::RetryResponse| now(&runs_again(it), it.event.as_ref());
                target.change(&asker, async |client| client.retry(request).await, told)
            }
            Self::Skip { hook: HookArguments { event, hook, asked }, yes } => {
                let OperatorArguments { reason, asker, target } = asked;
                if !yes {
                    target.confirm_unmoved(&event, "Skip the hook now?", |event| unmoved_without(event, &hook))?;
                }
                let request = shown::SkipRequest { event, hook, reason };
                let told = |it: &shown::SkipResponse| now(&format!("skipped {}", it.hook), it.event.as_ref());
                target.change(&asker, async |client| client.skip(request).await, told)
            }
        }
    }
}

/// `90s`, `2h`, `1h 30m`, counted from now; or RFC 3339.
fn end(text: &str) -> Result<End, String> {
    let when = if let Ok(span) = humantime::parse_duration(text) {
        match u64::try_from(span.as_millis()) {
            Ok(ms) if span > Duration::ZERO => When::AfterMs(ms),
            Ok(_) | Err(_) => return Err("the end must be in the future: write a duration such as 2h or 1h 30m".into()),
        }
    } else {
        let at = from_rfc3339(text).ok_or("write a duration (2h, 1h 30m) or a time (2026-01-31T12:00:00Z)")?;
        When::At(rfc3339(at))
    };
    Ok(End { when: Some(when) })
}

fn paused(paused: &shown::PauseResponse) -> String {
    let mut text = halted("all approvals are paused", paused.pause.as_ref());
    for event in &paused.too_late_for {
        let _ = writeln!(text, "too late for {event}: the approval is assigned, or Azure has started the event");
    }
    text
}

fn held_back(what: &str, held: &shown::HoldResponse) -> String {
    held.takes_back.iter().fold(halted(what, held.hold.as_ref()), |told, request| {
        format!("{told}taken back by this hold: {}\n", output::sentence(request))
    })
}

fn halted(what: &str, halt: Option<&shown::Pause>) -> String {
    let Some(halt) = halt else { return format!("{what}, but the end has already passed\n") };
    let mut text = format!("{what} until {}\n", output::sentence(&halt.until));
    for start in &halt.starts_before {
        let _ =
            writeln!(text, "{} starts all the same: its notice ends at {}", start.event, output::sentence(&start.at));
    }
    if !halt.unacknowledged_by.is_empty() {
        let names = halt.unacknowledged_by.join(", ");
        let alone = if halt.unacknowledged_may_approve {
            ": an isolated replica may still approve user-initiated events by itself"
        } else {
            ""
        };
        let _ = writeln!(text, "not acknowledged yet by {names}{alone}");
    }
    text
}

/// The hook of the retry, and what the hook waits for.
fn runs_again(retried: &shown::RetryResponse) -> String {
    let from = retried.event.as_ref().and_then(runs_from).map_or_else(String::new, |from| format!(", {from}"));
    format!("{} runs again{from}", retried.hook)
}

/// The open events after a pause.
fn resumed(resumed: &shown::ResumeResponse) -> String {
    let course = |event: &shown::Event| if event.hold.is_some() { "is still held" } else { "goes on" };
    let open = resumed.events.iter().map(|event| now(course(event), Some(event)));
    format!("approvals are resumed\n{}", open.collect::<String>())
}

/// The completed request, the event's state, and the primaries that go down with the event.
fn now(done: &str, event: Option<&shown::Event>) -> String {
    let Some(event) = event else { return format!("{done}\n") };
    let mut text = format!("{done}: {}\n", output::summary(event));
    for blocker in output::blockers(event) {
        let _ = writeln!(text, "waits: {}", output::sentence(&blocker.message));
    }
    if let Some(told) = going_down(&unmoved_primaries(event)) {
        let _ = writeln!(text, "WARNING: {}", output::sentence(&told));
    }
    text
}

#[cfg(test)]
mod tests;
