//! `allclear hold`, `release`, `pause`, `resume`, `approve` and `skip`: what operators ask about events. Any replica
//! may be asked.

use std::fmt::Write as _;
use std::time::Duration;

use super::ask::{Target, answer, print};
use super::{Exit, examples, told};
use crate::replica::clock::{from_rfc3339, rfc3339};
use crate::rpc::client::Asking;
use crate::wire::pb::allclear::operator::v1 as shown;
use crate::wire::pb::allclear::operator::v1::end::When;

/// Keeps an event from being approved until a time; its hooks go on
#[derive(clap::Args)]
#[command(after_help = examples::HOLD)]
pub(super) struct Hold {
    /// The event's id
    #[arg(value_name = "EVENT")]
    event: String,
    /// When the hold ends by itself, at most 30 days away: 2h, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "SPAN|TIME", value_parser = end)]
    until: When,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    target: Target,
}

/// Ends a hold
#[derive(clap::Args)]
#[command(after_help = examples::RELEASE)]
pub(super) struct Release {
    /// The event's id
    #[arg(value_name = "EVENT")]
    event: String,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    target: Target,
}

/// Keeps every event from being approved until a time; hooks go on
#[derive(clap::Args)]
#[command(after_help = examples::PAUSE)]
pub(super) struct Pause {
    /// When the pause ends by itself, at most 30 days away: 2h, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "SPAN|TIME", value_parser = end)]
    until: When,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    target: Target,
}

/// Ends a pause
#[derive(clap::Args)]
#[command(after_help = examples::RESUME)]
pub(super) struct Resume {
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    target: Target,
}

/// Approves an event without what is left of its preparation; running hooks are stopped. With --alone on a replica that
/// has no quorum, by that replica alone
#[derive(clap::Args)]
#[command(after_help = examples::APPROVE)]
pub(super) struct Approve {
    /// The event's id
    #[arg(value_name = "EVENT")]
    event: String,
    /// The event's revision, as `allclear explain` showed it; refused when the event has changed since
    #[arg(long, value_name = "NUMBER")]
    revision: Option<u64>,
    /// Approve it without a quorum, on the replica that is asked: it hears no leader, runs no hooks, and cannot know what
    /// the other replicas hold or approve
    #[arg(long)]
    alone: bool,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    target: Target,
}

/// Stops waiting for one hook of an event; if it runs it is stopped
#[derive(clap::Args)]
#[command(after_help = examples::SKIP)]
pub(super) struct Skip {
    /// The event's id
    #[arg(value_name = "EVENT")]
    event: String,
    /// The hook: WORKLOAD/PHASE or VM/WORKLOAD/PHASE, with #2 behind it for the second of its phase
    #[arg(value_name = "HOOK")]
    hook: String,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    target: Target,
}

#[derive(clap::Args)]
struct Why {
    /// Why: kept in the log, and shown with the event
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Hold {
    pub(super) fn run(self) -> Exit {
        let Self { event, until, why: Why { reason }, target } = self;
        let id = event.clone();
        answer(async move {
            let request = shown::HoldRequest { event, until: Some(shown::End { when: Some(until) }), reason };
            let held = Asking::connect(&target.endpoint).await?.hold(request).await?;
            print(&target, &held, |held| halted(&format!("{id} is held"), held.hold.as_ref()))
        })
    }
}

impl Release {
    pub(super) fn run(self) -> Exit {
        let Self { event, why: Why { reason }, target } = self;
        answer(async move {
            let request = shown::ReleaseRequest { event, reason };
            let released = Asking::connect(&target.endpoint).await?.release(request).await?;
            print(&target, &released, |released| now("released", released.event.as_ref()))
        })
    }
}

impl Pause {
    pub(super) fn run(self) -> Exit {
        let Self { until, why: Why { reason }, target } = self;
        answer(async move {
            let request = shown::PauseRequest { until: Some(shown::End { when: Some(until) }), reason };
            let paused = Asking::connect(&target.endpoint).await?.pause(request).await?;
            print(&target, &paused, |paused| {
                let mut text = halted("all approvals are paused", paused.pause.as_ref());
                for event in &paused.too_late_for {
                    let _ =
                        writeln!(text, "too late for {event}: its approval was assigned already, or it has started");
                }
                text
            })
        })
    }
}

impl Resume {
    pub(super) fn run(self) -> Exit {
        let Self { why: Why { reason }, target } = self;
        answer(async move {
            let resumed = Asking::connect(&target.endpoint).await?.resume(shown::ResumeRequest { reason }).await?;
            print(&target, &resumed, |_| "approvals are resumed\n".into())
        })
    }
}

impl Approve {
    pub(super) fn run(self) -> Exit {
        let Self { event, revision, alone, why: Why { reason }, target } = self;
        let done = if alone { "approved without a quorum" } else { "approved" };
        answer(async move {
            let request = shown::ApproveRequest { event, revision, reason, alone };
            let approved = Asking::connect(&target.endpoint).await?.approve(request).await?;
            print(&target, &approved, |approved| now(done, approved.event.as_ref()))
        })
    }
}

impl Skip {
    pub(super) fn run(self) -> Exit {
        let Self { event, hook, why: Why { reason }, target } = self;
        answer(async move {
            let request = shown::SkipRequest { event, hook, reason };
            let skipped = Asking::connect(&target.endpoint).await?.skip(request).await?;
            print(&target, &skipped, |skipped| now(&format!("skipped {}", skipped.hook), skipped.event.as_ref()))
        })
    }
}

/// `90s`, `2h`, `1h 30m`, counted from now; or RFC 3339.
fn end(text: &str) -> Result<When, String> {
    if let Ok(span) = humantime::parse_duration(text) {
        return match u64::try_from(span.as_millis()) {
            Ok(ms) if span > Duration::ZERO => Ok(When::AfterMs(ms)),
            Ok(_) | Err(_) => Err("it has to end in the future".into()),
        };
    }
    let at = from_rfc3339(text).ok_or("say for how long (2h, 1h 30m) or until when (2026-01-31T12:00:00Z)")?;
    Ok(When::At(rfc3339(at)))
}

fn halted(what: &str, halt: Option<&shown::Pause>) -> String {
    let Some(halt) = halt else { return format!("{what}, and it has ended already\n") };
    let mut text = format!("{what} until {}\n", told::sentence(&halt.until));
    if !halt.unacknowledged_by.is_empty() {
        let names = halt.unacknowledged_by.join(", ");
        let _ = writeln!(
            text,
            "not acknowledged yet by {names}: cut off, it may approve alone what a user of the cloud asked for"
        );
    }
    text
}

/// What was done, and where the event is.
fn now(done: &str, event: Option<&shown::Event>) -> String {
    let waits = event.and_then(|event| event.blocker.as_ref());
    let waits = waits.map(|blocker| format!("waits: {}\n", told::sentence(&blocker.message))).unwrap_or_default();
    event.map_or_else(|| format!("{done}\n"), |event| format!("{done}: {}\n{waits}", told::summary(event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_span_or_a_time() {
        assert_eq!(end("2h"), Ok(When::AfterMs(7_200_000)));
        assert_eq!(end("1h 30m"), Ok(When::AfterMs(5_400_000)));
        assert_eq!(end("2026-01-31T13:00:00+01:00"), Ok(When::At("2026-01-31T12:00:00.000Z".into())));
        for bad in ["", "0s", "tomorrow", "12", "2026-01-31"] {
            assert!(end(bad).is_err(), "{bad:?}");
        }
    }
}
