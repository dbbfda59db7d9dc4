//! The spans of one event, computed from the log when the event is closed. Nothing is recorded while the event happens,
//! so a lost replica loses no span. Equal states give equal spans.

use allclear_core::model::document;
use bytes::Bytes;

use super::failure;
use super::otlp::{Attribute, Code, Kind, Moment, Span, Status, list, number, text};
use crate::replica::clock::rfc3339;
use crate::replica::trace::{Id, SpanId, TraceId};
use allclear_core::model::attempt::{Attempt, Outcome, Waiver, WaiverReason};
use allclear_core::model::claim::{Claim, PostOutcome, Reason};
use allclear_core::model::document::NotBefore;
use allclear_core::model::event::{Ending, Event};
use allclear_core::model::id::VmName;
use allclear_core::model::isolated_approval::IsolatedApproval;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::operator::{OperatorAction, OperatorRecord};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::treatment::Action;
use allclear_core::start_cause::StartCause;

/// A span with its replica; `None` is the cluster as a whole.
pub(super) type Placed = (Option<VmName>, Span);

/// All spans of an event; the span of the event itself comes first.
pub(super) fn of(cluster: &str, state: &State, event: &Event) -> Vec<Placed> {
    let trace =
        Trace { id: TraceId::of(cluster, event), event, closed: event.entered_at(Stage::Closed).unwrap_or(state.now) };
    let of_the_cluster = core::iter::once(trace.whole(state)).chain(trace.waits());
    of_the_cluster
        .map(|span| (None, span))
        .chain(event.attempts.iter().map(|attempt| (Some(attempt.on.clone()), trace.attempt(attempt))))
        .chain(event.claims.iter().map(|claim| (Some(claim.approver.clone()), trace.claim(claim))))
        .chain(event.isolated_approvals.iter().map(|alone| (Some(alone.approver.clone()), trace.takeover(alone))))
        .collect()
}

struct Trace<'a> {
    id: TraceId,
    event: &'a Event,
    closed: Timestamp,
}

impl Trace<'_> {
    fn span(&self, Id(id): SpanId, name: impl Into<String>, from: Timestamp, to: Timestamp) -> Span {
        Span {
            trace_id: Bytes::copy_from_slice(&self.id.0),
            span_id: Bytes::copy_from_slice(&id),
            parent_span_id: Bytes::copy_from_slice(&self.root().0),
            name: name.into(),
            kind: Kind::Internal.into(),
            start_time_unix_nano: nanos(from),
            end_time_unix_nano: nanos(to.max(from)),
            ..Span::default()
        }
    }

    fn root(&self) -> SpanId {
        self.id.span("event")
    }

    /// The root span, from the announcement to the end of the event. Its kind is consumer, so that tracing systems
    /// which separate requests from their effects show the event as a request.
    fn whole(&self, state: &State) -> Span {
        let event = self.event;
        let kind = &event.announcement.kind;
        let name = match kind {
            // The platform's text for an unknown type is not a stable name.
            document::EventType::Other(_) => "event".to_owned(),
            _ => format!("event {kind}"),
        };
        let span = Span {
            parent_span_id: Bytes::new(),
            kind: Kind::Consumer.into(),
            attributes: described(event),
            events: moments(state, event, self.closed),
            ..self.span(self.root(), name, event.first_seen(), self.closed)
        };
        match failure::of(state, event) {
            Some(failure) => failed(span, failure.kind, failure.why),
            None => span,
        }
    }

    /// The waiting times of the event in sequence: preparation, end, and completed restoring.
    fn waits(&self) -> impl Iterator<Item = Span> {
        let event = self.event;
        let over = event.over_at();
        let started = event.entered_at(Stage::Started);
        let is_prepared = event.treatment.as_ref().is_some_and(|treatment| treatment.action == Action::Prepare);
        let all_clear = event.time_to_all_clear().map(|span| event.first_seen().plus(span));
        let settled = [all_clear, started, over].into_iter().flatten().min();
        let prepare = settled.filter(|_| is_prepared).map(|to| ("prepare", event.preparation_starts(), to));
        let impact = started.zip(over).map(|(from, to)| ("impact", from, to));
        let restore = event.entered_at(Stage::Restoring).map(|from| ("restore", from, self.closed));
        let waits = [prepare, impact, restore].into_iter().flatten().filter(|(_, from, to)| from <= to);
        waits.map(move |(name, from, to)| self.span(self.id.span(name), name, from, to))
    }

    /// The span of an attempt; the hook may add spans below this span.
    fn attempt(&self, attempt: &Attempt) -> Span {
        let Attempt { id, member, hook, intent, outcome, late, .. } = attempt;
        let ended = outcome.as_ref().map_or(self.closed, |(_, at)| *at);
        let word = outcome.as_ref().map(|(outcome, _)| outcome.as_str());
        let late = late.as_ref().map(|(outcome, at)| moment(*at, "late outcome", outcome_of(outcome)));
        let span = Span {
            kind: Kind::Client.into(),
            attributes: [
                text("allclear.hook.attempt", self.event.announcement.id.key_of(*id)),
                text("allclear.hook.workload", &member.workload.0),
                text("allclear.hook.vm", member.vm.as_str()),
                text("allclear.hook.phase", hook.phase.as_str()),
                text("allclear.hook.intent", intent.as_str()),
            ]
            .into_iter()
            .chain(word.map(|word| text("allclear.hook.outcome", word)))
            .collect(),
            events: late.into_iter().collect(),
            ..self.span(self.id.attempt(*id), format!("{intent} {}", hook.phase), attempt.begun_at, ended)
        };
        match outcome {
            Some((outcome, _)) if failure::is_failure(outcome) => {
                failed(span, outcome.as_str(), outcome.reason().unwrap_or_default().to_owned())
            }
            Some(_) => span,
            None => failed(span, "unknown", "no outcome was reported before the event closed".to_owned()),
        }
    }

    /// The span of a claim, from the decision to the outcome of the post.
    fn claim(&self, claim: &Claim) -> Span {
        let attempt = text("allclear.approval.attempt", self.event.announcement.id.key_of(claim.attempt));
        let ended = claim.outcome.as_ref().map_or(claim.until, |(_, at)| *at);
        let span = self.span(self.id.attempt(claim.attempt), "approve", claim.at, ended);
        posted(span, claim.reason, [attempt], claim.outcome.as_ref())
    }

    /// The span of an isolated approval.
    fn takeover(&self, alone: &IsolatedApproval) -> Span {
        let id = self.id.span(&format!("alone {} {}", alone.approver.as_str().to_ascii_lowercase(), alone.at.0));
        let ended = alone.outcome.as_ref().map_or(alone.at, |(_, at)| *at);
        let span = self.span(id, "approve alone", alone.at, ended);
        let facts = [
            text("allclear.approval.alone_since", rfc3339(alone.alone_since)),
            list("allclear.approval.out_of_reach", &alone.out_of_reach),
        ];
        posted(span, Reason::IsolatedApproval, facts, alone.outcome.as_ref())
    }
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or_default().saturating_mul(1_000_000)
}

fn moment(at: Timestamp, name: impl Into<String>, attributes: impl IntoIterator<Item = Attribute>) -> Moment {
    Moment { time_unix_nano: nanos(at), name: name.into(), attributes: attributes.into_iter().collect() }
}

fn failed(mut span: Span, kind: &str, why: String) -> Span {
    span.attributes.push(text("error.type", kind));
    span.status = Some(Status { message: why, code: Code::Error.into() });
    span
}

fn outcome_of(outcome: &Outcome) -> impl Iterator<Item = Attribute> {
    let reason = outcome.reason().map(|reason| text("allclear.hook.reason", reason));
    [text("allclear.hook.outcome", outcome.as_str())].into_iter().chain(reason)
}

fn posted(
    mut span: Span,
    reason: Reason,
    facts: impl IntoIterator<Item = Attribute>,
    outcome: Option<&(PostOutcome, Timestamp)>,
) -> Span {
    span.attributes.push(text("allclear.approval.reason", reason.as_str()));
    span.attributes.extend(facts);
    let Some((outcome, _)) = outcome else {
        return failed(span, "unknown", "the outcome of the post was not recorded".to_owned());
    };
    span.attributes.push(text("allclear.approval.outcome", outcome.as_str()));
    match outcome {
        PostOutcome::Accepted | PostOutcome::Withdrawn | PostOutcome::Differs => span,
        PostOutcome::Refused(status) => {
            span.attributes.push(number("http.response.status_code", *status));
            failed(span, outcome.as_str(), format!("Azure answered with {status}"))
        }
        PostOutcome::NotSent(why) | PostOutcome::Unknown(why) => failed(span, outcome.as_str(), why.clone()),
    }
}

/// Attributes of the announcement, of the chosen treatment, and of the end.
fn described(event: &Event) -> Vec<Attribute> {
    let announced = &event.announcement;
    let not_before = match announced.not_before {
        NotBefore::At(at) => Some(text("allclear.event.not_before", rfc3339(at))),
        NotBefore::Unknown => None,
    };
    let treatment = event.treatment.as_ref();
    let known = [
        not_before,
        announced.duration.map(|span| number("allclear.event.duration_s", span.as_secs())),
        Some(&announced.description).filter(|it| !it.is_empty()).map(|it| text("allclear.event.description", it)),
        treatment.map(|treatment| text("allclear.event.treatment", treatment.action.as_str())),
        treatment.map(|treatment| text("allclear.event.rule", &treatment.rule)),
        event.start_cause().map(StartCause::as_str).map(|word| text("allclear.event.start_cause", word)),
        event.ending.map(Ending::as_str).map(|word| text("allclear.event.outcome", word)),
        event.drill.as_ref().map(|drill| text("allclear.event.drill", drill.mode.as_str())),
    ];
    let always = [
        text("allclear.event.id", announced.id.as_str()),
        text("allclear.event.type", announced.kind.as_str()),
        text("allclear.event.source", announced.source.as_str()),
        list("allclear.event.resources", &announced.resources),
        list("allclear.event.seen_by", &event.seen_by),
    ];
    always.into_iter().chain(known.into_iter().flatten()).collect()
}

/// Stages, waivers, operator requests and the impacts observed by the VMs, ordered by time.
fn moments(state: &State, event: &Event, closed: Timestamp) -> Vec<Moment> {
    let stages = event.entered.iter().map(|(stage, at)| moment(*at, stage.as_str(), []));
    let waivers = event.waivers.iter().map(|waiver| waived(state, waiver));
    let operator_requests = state.records_about(event, closed).map(wished);
    // A stage may have the timestamp of its cause.
    let mut moments: Vec<_> = waivers.chain(operator_requests).chain(stages).chain(impacts(event)).collect();
    moments.sort_by_key(|moment| moment.time_unix_nano);
    moments
}

fn waived(state: &State, waiver: &Waiver) -> Moment {
    let Waiver { member, hook, why, at } = waiver;
    let by = match why {
        WaiverReason::Unreachable => None,
        WaiverReason::Skipped { who, reason } => Some([text("allclear.by", who), text("allclear.reason", reason)]),
    };
    let facts = [text("allclear.hook", state.hook_name(member, *hook)), text("allclear.hook.waived", why.as_str())];
    moment(*at, "hook not waited for", facts.into_iter().chain(by.into_iter().flatten()))
}

fn wished(wish: &OperatorRecord) -> Moment {
    let (name, of_its_own) = match &wish.what {
        OperatorAction::Hold { until, .. } => ("hold", Some(text("allclear.until", rfc3339(*until)))),
        OperatorAction::Release => ("release", None),
        OperatorAction::Approve { revision, .. } => ("approve", Some(number("allclear.event.revision", *revision))),
        OperatorAction::Pause { until } => ("pause", Some(text("allclear.until", rfc3339(*until)))),
        OperatorAction::Resume => ("resume", None),
        OperatorAction::Prepare { from, .. } => ("prepare", Some(text("allclear.from", rfc3339(*from)))),
        OperatorAction::Retry { member, hook, .. } => {
            ("retry", Some(text("allclear.hook", format!("{member}/{}", hook.phase))))
        }
        OperatorAction::Restored(member) => ("restored", Some(text("allclear.member", member.to_string()))),
        OperatorAction::ClusterChange(what) => ("wish", Some(text("allclear.wish", what))),
    };
    let reason = Some(&wish.reason).filter(|reason| !reason.is_empty()).map(|it| text("allclear.reason", it));
    moment(wish.at, name, [text("allclear.by", &wish.who)].into_iter().chain(reason).chain(of_its_own))
}

/// The impacts that the replicas of the affected VMs have reported.
fn impacts(event: &Event) -> impl Iterator<Item = Moment> {
    let over = event.over_at().unwrap_or_default();
    event.impacts.iter().map(move |(vm, lasted)| {
        let facts = [text("allclear.vm", vm.as_str()), number("allclear.impact.observed_ms", lasted.as_millis())];
        moment(over, "impact observed", facts)
    })
}
