//! `allclear events`: the list of events, for people or as JSON.

use std::cell::OnceCell;
use std::time::Duration;

use super::output;
use super::query::{Target, answered};
use super::{Exit, examples, export};
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;
use allclear_server::grpc::client::{OperatorClientError, OperatorConnection};
use allclear_server::replica::clock::{self, from_rfc3339, rfc3339};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Lists the open events and the most recent closed ones
#[derive(clap::Args)]
#[command(after_help = examples::EVENTS)]
pub(super) struct Events {
    /// Lists only the open events
    #[arg(long)]
    open: bool,
    /// Lists only events with changes since this time: 2h (ago), or 2026-01-31T12:00:00Z; open events are always listed
    #[arg(long, value_name = "SPAN|TIME", value_parser = since)]
    since: Option<Since>,
    /// Lists at most this number of events: the newest
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// Lists only the events that name this VM
    #[arg(long, value_name = "NAME")]
    vm: Option<String>,
    /// Lists only the events of this type: Freeze, Reboot, Redeploy, Preempt or Terminate
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Lists only the events with a hook that failed, and the events that Azure started before this cluster approved
    /// them
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    target: Target,
    /// Prints all recorded events in full, one JSON object per line, the oldest first
    #[arg(long, conflicts_with_all = ["open", "limit", "vm", "kind", "failed", "json", "output"])]
    export: bool,
}

impl Events {
    pub(super) fn run(self) -> Result<(), Exit> {
        if self.export {
            return answered(export::all(&self.target.endpoint, self.since));
        }
        let now = OnceCell::new();
        self.target.look(
            async |asking| {
                let _ = now.set(asking.status().await?.now);
                let since = match self.since {
                    Some(since) => Some(since.time(asking).await?),
                    None => None,
                };
                Ok(self.chosen(self.listed(asking, since).await?, since))
            },
            |events| output::events(&self.target.reader().at_time(now.get().map_or("", String::as_str)), events),
        )
    }

    /// The open events and the most recent closed ones; or all events, if older events may be wanted.
    async fn listed(
        &self,
        asking: &mut OperatorConnection,
        since: Option<Timestamp>,
    ) -> Result<Vec<shown::Event>, OperatorClientError> {
        let wants_older = since.is_some() || self.limit.is_some() || self.has_filter();
        if self.open || !wants_older {
            return Ok(asking.events().await?.events);
        }
        let mut all = Vec::new();
        asking
            .all_events(since.map(rfc3339), |events| {
                all.extend(events.into_iter().filter(|event| self.fits(event)));
                Ok(())
            })
            .await?;
        Ok(all)
    }

    fn has_filter(&self) -> bool {
        self.vm.is_some() || self.kind.is_some() || self.failed
    }

    fn fits(&self, event: &shown::Event) -> bool {
        let names = |vm: &String| event.resources.iter().any(|named| VmName::new(named) == VmName::new(vm));
        let is_of = |kind: &String| event.r#type.eq_ignore_ascii_case(kind);
        self.vm.as_ref().is_none_or(names)
            && self.kind.as_ref().is_none_or(is_of)
            && (!self.failed || has_failed(event))
    }

    /// The newest events last, in the order of the list.
    fn chosen(&self, mut events: Vec<shown::Event>, since: Option<Timestamp>) -> shown::EventList {
        let is_open = |event: &shown::Event| event.stage != "closed";
        let newest = |event: &shown::Event| event.timeline.last().and_then(|step| from_rfc3339(&step.at));
        let is_recent = |event: &shown::Event| since.is_none_or(|since| newest(event).is_none_or(|at| at >= since));
        events.retain(|event| self.fits(event) && (is_open(event) || (!self.open && is_recent(event))));
        let beyond = events.len().saturating_sub(self.limit.unwrap_or(usize::MAX));
        shown::EventList { events: events.split_off(beyond), next: None }
    }
}

/// Whether a hook failed, or Azure started the event before this cluster approved the event. An observed event is for
/// others to approve.
fn has_failed(event: &shown::Event) -> bool {
    let is_failure = |outcome: &str| matches!(outcome, "failed" | "timed_out" | "unknown");
    let is_unapproved = event.start_cause.as_deref().is_some_and(|cause| cause != "approved");
    event.hooks.iter().filter_map(|hook| hook.outcome.as_deref()).any(is_failure)
        || (is_unapproved && event.treatment.as_deref() != Some("observe"))
        || !event.missing_hooks.is_empty()
}

/// The start of a list of events, as given on the command line.
#[derive(Clone, Copy)]
pub(super) enum Since {
    Ago(Duration),
    At(Timestamp),
}

impl Since {
    /// Counts back by the cluster's time: the clock of this machine may be wrong.
    pub(super) async fn time(self, asking: &mut OperatorConnection) -> Result<Timestamp, OperatorClientError> {
        match self {
            Self::At(at) => Ok(at),
            Self::Ago(span) => {
                let now = asking.status().await?.now;
                Ok(from_rfc3339(&now).unwrap_or_else(clock::now).minus(span))
            }
        }
    }
}

/// `2h`, or RFC 3339.
fn since(text: &str) -> Result<Since, String> {
    if let Ok(span) = humantime::parse_duration(text) {
        return Ok(Since::Ago(span));
    }
    let at = from_rfc3339(text).map(Since::At);
    at.ok_or_else(|| "write a duration (2h, 1d) or a time (2026-01-31T12:00:00Z)".into())
}
