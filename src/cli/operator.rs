//! `allclear hold`, `release`, `pause`, `resume`, `approve` and `skip`: operators' requests about events. Any replica
//! accepts these commands.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Subcommand;

use super::query::Target;
use super::{Exit, examples, output};
use allclear_server::replica::clock::{from_rfc3339, rfc3339};
use allclear_wire::pb::allclear::operator::v1::end::When;
use allclear_wire::pb::allclear::operator::v1::{self as shown, End};

#[derive(Subcommand)]
pub(super) enum OperatorCommand {
    /// Keeps an event from being approved until a time; its members stay in service, or return, until shortly before the
    /// platform goes ahead
    #[command(after_help = examples::HOLD)]
    Hold {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        /// When the hold ends by itself, at most 30 days away: 2h, or 2026-01-31T12:00:00Z
        #[arg(long, value_name = "SPAN|TIME", value_parser = end)]
        until: End,
        /// No hook is begun either, not even shortly before the platform goes ahead
        #[arg(long)]
        no_hooks: bool,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Ends a hold
    #[command(after_help = examples::RELEASE)]
    Release {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Keeps every event from being approved until a time; nobody is taken out of service until shortly before the
    /// platform goes ahead
    #[command(after_help = examples::PAUSE)]
    Pause {
        /// When the pause ends by itself, at most 30 days away: 2h, or 2026-01-31T12:00:00Z
        #[arg(long, value_name = "SPAN|TIME", value_parser = end)]
        until: End,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Ends a pause
    #[command(after_help = examples::RESUME)]
    Resume(OperatorArguments),
    /// Approves an event without what is left of its preparation; running hooks are stopped. With --alone on a replica
    /// that has no quorum, by that replica alone
    #[command(after_help = examples::APPROVE)]
    Approve {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        /// The event's revision, as `allclear explain` showed it; refused when the event has changed since
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u64>,
        /// Approve it without a quorum, on the replica that is asked: it hears no leader, runs no hooks, and cannot know
        /// what the other replicas hold or approve
        #[arg(long)]
        alone: bool,
        /// Approve it whoever else of its groups is out, as `allclear workload list` shows
        #[arg(long, conflicts_with = "alone")]
        over_budget: bool,
        #[command(flatten)]
        asked: OperatorArguments,
    },
    /// Stops waiting for one hook of an event; if it runs it is stopped
    #[command(after_help = examples::SKIP)]
    Skip {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: String,
        /// The hook: WORKLOAD/PHASE or VM/WORKLOAD/PHASE, with #2 behind it for the second of its phase
        #[arg(value_name = "HOOK")]
        hook: String,
        #[command(flatten)]
        asked: OperatorArguments,
    },
}

#[derive(clap::Args)]
pub(super) struct OperatorArguments {
    /// Why: kept in the log, and shown with the event
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    target: Target,
}

impl OperatorCommand {
    pub(super) fn run(self) -> Result<(), Exit> {
        match self {
            Self::Hold { event, until, no_hooks, asked: OperatorArguments { reason, target } } => {
                let what = format!("{event} is held");
                let request = shown::HoldRequest { event, until: Some(until), reason, no_hooks };
                let told = |held: &shown::HoldResponse| halted(&what, held.hold.as_ref());
                target.change(async |client| client.hold(request).await, told)
            }
            Self::Release { event, asked: OperatorArguments { reason, target } } => {
                let request = shown::ReleaseRequest { event, reason };
                let told = |released: &shown::ReleaseResponse| now("released", released.event.as_ref());
                target.change(async |client| client.release(request).await, told)
            }
            Self::Pause { until, asked: OperatorArguments { reason, target } } => {
                let request = shown::PauseRequest { until: Some(until), reason };
                target.change(async |client| client.pause(request).await, paused)
            }
            Self::Resume(OperatorArguments { reason, target }) => {
                let request = shown::ResumeRequest { reason };
                target.change(async |client| client.resume(request).await, |_| "approvals are resumed\n".into())
            }
            Self::Approve { event, revision, alone, over_budget, asked: OperatorArguments { reason, target } } => {
                let done = if alone { "approved without a quorum" } else { "approved" };
                let request = shown::ApproveRequest { event, revision, reason, alone, over_budget };
                let told = |approved: &shown::ApproveResponse| now(done, approved.event.as_ref());
                target.change(async |client| client.approve(request).await, told)
            }
            Self::Skip { event, hook, asked: OperatorArguments { reason, target } } => {
                let request = shown::SkipRequest { event, hook, reason };
                let told = |it: &shown::SkipResponse| now(&format!("skipped {}", it.hook), it.event.as_ref());
                target.change(async |client| client.skip(request).await, told)
            }
        }
    }
}

/// `90s`, `2h`, `1h 30m`, counted from now; or RFC 3339.
fn end(text: &str) -> Result<End, String> {
    let when = if let Ok(span) = humantime::parse_duration(text) {
        match u64::try_from(span.as_millis()) {
            Ok(ms) if span > Duration::ZERO => When::AfterMs(ms),
            Ok(_) | Err(_) => return Err("it has to end in the future".into()),
        }
    } else {
        let at = from_rfc3339(text).ok_or("say for how long (2h, 1h 30m) or until when (2026-01-31T12:00:00Z)")?;
        When::At(rfc3339(at))
    };
    Ok(End { when: Some(when) })
}

fn paused(paused: &shown::PauseResponse) -> String {
    let mut text = halted("all approvals are paused", paused.pause.as_ref());
    for event in &paused.too_late_for {
        let _ = writeln!(text, "too late for {event}: its approval was assigned already, or it has started");
    }
    text
}

fn halted(what: &str, halt: Option<&shown::Pause>) -> String {
    let Some(halt) = halt else { return format!("{what}, and it has ended already\n") };
    let mut text = format!("{what} until {}\n", output::sentence(&halt.until));
    if !halt.unacknowledged_by.is_empty() {
        let names = halt.unacknowledged_by.join(", ");
        let _ = writeln!(
            text,
            "not acknowledged yet by {names}: cut off, it may approve alone what a user of the cloud asked for"
        );
    }
    text
}

/// The completed request, and the event's state.
fn now(done: &str, event: Option<&shown::Event>) -> String {
    let waits = event.and_then(|event| event.blocker.as_ref());
    let waits = waits.map(|blocker| format!("waits: {}\n", output::sentence(&blocker.message))).unwrap_or_default();
    event.map_or_else(|| format!("{done}\n"), |event| format!("{done}: {}\n{waits}", output::summary(event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_span_or_a_time() {
        let end_at = |when| Ok(End { when: Some(when) });
        assert_eq!(end("2h"), end_at(When::AfterMs(7_200_000)));
        assert_eq!(end("1h 30m"), end_at(When::AfterMs(5_400_000)));
        assert_eq!(end("2026-01-31T13:00:00+01:00"), end_at(When::At("2026-01-31T12:00:00.000Z".into())));
        for bad in ["", "0s", "tomorrow", "12", "2026-01-31"] {
            assert!(end(bad).is_err(), "{bad:?}");
        }
    }
}
