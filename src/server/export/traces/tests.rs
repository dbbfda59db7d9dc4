//! Tests the trace of an event with two hooks, a further attempt and a rejected claim.

mod made;

use std::collections::BTreeSet;
use std::time::Duration;

use self::made::{announced, attempt, event, takeover, treatment, vm};
use super::otlp::{Any, Attribute, Code, Kind, Span};
use super::spans::Placed;
use super::*;
use crate::replica::trace::TraceId;
use allclear_core::model::attempt::{Attempt, Outcome, Waiver, WaiverReason};
use allclear_core::model::claim::Reason;
use allclear_core::model::document::NotBefore;
use allclear_core::model::event::Ending;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::operator::{OperatorAction, OperatorRecord};
use allclear_core::model::time::Timestamp;
use allclear_core::model::treatment::Action;
use allclear_core::model::workload::{Intent, Phase};

const CLUSTER: &str = "orders";

fn spans(event: &Event) -> Vec<Placed> {
    spans::of(CLUSTER, &State::default(), event)
}

/// Name and replica of a span, start and end in milliseconds.
fn told((on, span): &Placed) -> (String, String, u64, u64) {
    let on = on.as_ref().map_or("-".to_owned(), ToString::to_string);
    (span.name.clone(), on, span.start_time_unix_nano / 1_000_000, span.end_time_unix_nano / 1_000_000)
}

fn named<'a>(spans: &'a [Placed], name: &str) -> Vec<&'a Span> {
    spans.iter().map(|(_, span)| span).filter(|span| span.name == name).collect()
}

fn of<'a>(attributes: &'a [Attribute], key: &str) -> Option<&'a Any> {
    attributes.iter().find(|each| each.key == key)?.value.as_ref()?.value.as_ref()
}

fn text_of<'a>(attributes: &'a [Attribute], key: &str) -> Option<&'a str> {
    match of(attributes, key)? {
        Any::StringValue(text) => Some(text),
        Any::IntValue(_) | Any::ArrayValue(_) => None,
    }
}

/// `error.type` of a span with an error status.
fn error(span: &Span) -> Option<&str> {
    let is_error = span.status.as_ref().is_some_and(|status| status.code() == Code::Error);
    assert_eq!(is_error, of(&span.attributes, "error.type").is_some(), "{span:?}");
    text_of(&span.attributes, "error.type")
}

fn error_of(event: &Event) -> Option<String> {
    error(&spans(event)[0].1).map(str::to_owned)
}

#[test]
fn every_attempt_every_claim_and_every_wait_is_a_span_below_the_event_where_it_happened() {
    let spans = spans(&event());
    let span = |name: &str, on: &str, from, to| (name.to_owned(), on.to_owned(), from, to);
    let expected = [
        span("event Reboot", "-", 1_000, 9_500),
        span("prepare", "-", 1_000, 4_520),
        span("impact", "-", 5_000, 9_000),
        span("restore", "-", 9_000, 9_500),
        span("run failover", "db-1", 1_020, 1_500),
        span("run failover", "db-1", 2_000, 3_000),
        span("run drain", "db-0", 3_000, 4_000),
        span("run restore", "db-0", 9_010, 9_400),
        span("approve", "db-2", 4_000, 4_020),
        span("approve", "db-1", 4_500, 4_520),
    ];
    assert_eq!(spans.iter().map(told).collect::<Vec<_>>(), expected);
    let (_, root) = &spans[0];
    assert_eq!((root.parent_span_id.as_ref(), root.kind()), (&[][..], Kind::Consumer));
    for (_, span) in &spans {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        assert_eq!(span.trace_id, root.trace_id);
    }
    assert!(spans[1..].iter().all(|(_, span)| span.parent_span_id == root.span_id));
    let ids: BTreeSet<_> = spans.iter().map(|(_, span)| span.span_id.clone()).collect();
    assert_eq!(ids.len(), spans.len());
}

#[test]
fn a_run_is_the_span_that_its_hook_was_told_of() {
    let event = event();
    let spans = spans(&event);
    for attempt in &event.attempts {
        let id = TraceId::of(CLUSTER, &event).attempt(attempt.id).0;
        let (on, span) = spans.iter().find(|(_, span)| span.span_id == id.as_slice()).unwrap();
        assert_eq!((on.as_ref(), span.kind()), (Some(&attempt.on), Kind::Client));
        assert_eq!(text_of(&span.attributes, "allclear.hook.attempt"), Some(&*format!("e-1.{}", attempt.id)));
    }
}

#[test]
fn what_went_wrong_is_an_error_where_it_happened_and_the_event_is_none_that_came_right() {
    let spans = spans(&event());
    let runs: Vec<_> = named(&spans, "run failover").into_iter().map(error).collect();
    assert_eq!(runs, [Some("failed"), None]);
    assert_eq!(named(&spans, "run failover")[0].status.as_ref().unwrap().message, "no standby");
    let approvals = named(&spans, "approve");
    assert_eq!(approvals.iter().map(|span| error(span)).collect::<Vec<_>>(), [Some("refused"), None]);
    assert_eq!(of(&approvals[0].attributes, "http.response.status_code"), Some(&Any::IntValue(400)));
    assert_eq!(error_of(&event()), None);
}

#[test]
fn an_event_failed_when_a_hook_did_for_good_and_nobody_said_to_go_on_without_it() {
    let mut failed = event();
    failed.attempts[1].outcome = Some((Outcome::TimedOut("too slow".into()), Timestamp(3_000)));
    assert_eq!(error_of(&failed).as_deref(), Some("hook_failed"));
    let root = spans(&failed).swap_remove(0).1;
    assert_eq!(root.status.unwrap().message, "db-0/database/failover: timed_out: too slow");
    // An undo does not change the failure of the attempt.
    let undo = attempt(7, Phase::Failover, 1, (3_100, 3_200), Outcome::Done);
    failed.attempts.push(Attempt { intent: Intent::Undo, ..undo });
    assert_eq!(error_of(&failed).as_deref(), Some("hook_failed"));
    let (who, reason) = ("ann".to_owned(), "it is empty".to_owned());
    let Attempt { member, hook, .. } = failed.attempts[1].clone();
    let at = Timestamp(3_500);
    failed.waivers.push(Waiver { member, hook, why: WaiverReason::Skipped { who, reason }, at });
    assert_eq!(error_of(&failed), None);
    let root = spans(&failed).swap_remove(0).1;
    let waived = root.events.iter().find(|moment| moment.name == "hook not waited for").unwrap();
    assert_eq!(text_of(&waived.attributes, "allclear.by"), Some("ann"));
}

#[test]
fn an_event_failed_when_it_began_unprepared() {
    let with = |change: fn(&mut Event)| {
        let mut event = event();
        change(&mut event);
        error_of(&event)
    };
    let without_approval = |event: &mut Event| event.claims.clear();
    assert_eq!(with(|event| event.claims[1].reason = Reason::BudgetSpent).as_deref(), Some("budget_spent"));
    assert_eq!(with(|event| event.claims[1].reason = Reason::NothingToPrepare), None);
    assert_eq!(with(without_approval).as_deref(), Some("approved_elsewhere"));
    let left_to_others = |event: &mut Event| {
        event.claims.clear();
        event.treatment = Some(treatment(Action::Observe));
    };
    assert_eq!(with(left_to_others), None, "that was policy");
    let expired = |event: &mut Event| {
        event.claims.clear();
        event.announcement.not_before = NotBefore::At(Timestamp(6_000));
    };
    assert_eq!(with(expired).as_deref(), Some("notice_expired"));
    let alone = |event: &mut Event| {
        event.claims.clear();
        event.isolated_approvals.push(takeover());
    };
    assert_eq!(with(alone).as_deref(), Some("takeover"));
}

#[test]
fn who_approved_alone_is_a_span_of_that_replica() {
    let mut event = event();
    event.claims.clear();
    event.isolated_approvals.push(takeover());
    let spans = spans(&event);
    let (on, span) = spans.iter().find(|(_, span)| span.name == "approve alone").unwrap();
    assert_eq!((on.as_ref(), error(span)), (Some(&vm(2)), None));
    assert_eq!(text_of(&span.attributes, "allclear.approval.reason"), Some("takeover"));
}

#[test]
fn an_event_that_was_cancelled_has_no_impact_and_what_was_left_open_ends_with_it() {
    let mut event = event();
    event.entered.retain(|(stage, _)| *stage <= Stage::Preparing);
    event.entered.push((Stage::Closed, Timestamp(4_000)));
    (event.claims, event.ending) = (Vec::new(), Some(Ending::Cancelled));
    event.attempts[2].outcome = None;
    let spans = spans(&event);
    assert!(named(&spans, "impact").is_empty() && named(&spans, "restore").is_empty());
    assert_eq!(named(&spans, "prepare").len(), 1);
    let open = named(&spans, "run drain")[0];
    assert_eq!((open.end_time_unix_nano, error(open)), (4_000_000_000, Some("unknown")));
    assert_eq!(error(&spans[0].1), None, "nothing began");
}

#[test]
fn names_are_few_whatever_the_platform_calls_its_events() {
    let mut event = event();
    event.announcement = announced("Defragment-7f3a");
    let root = spans(&event).swap_remove(0).1;
    assert_eq!(root.name, "event");
    assert_eq!(text_of(&root.attributes, "allclear.event.type"), Some("Defragment-7f3a"));
}

#[test]
fn the_event_tells_its_stages_wishes_and_what_its_vms_observed_in_order() {
    let mut event = event();
    let wish = |number, at, what| OperatorRecord { number, at, who: "ann".into(), reason: "backup".into(), what };
    event.operator_records.push(wish(
        1,
        Timestamp(1_200),
        OperatorAction::Hold { until: Timestamp(60_000), no_hooks: false },
    ));
    let mut state = State::default();
    let over = wish(2, Timestamp(100), OperatorAction::Pause { until: Timestamp(900) });
    state.operator_records = vec![over, wish(3, Timestamp(2_000), OperatorAction::Resume)];
    let spans = spans::of(CLUSTER, &state, &event);
    let moments: Vec<_> = spans[0].1.events.iter().map(|moment| moment.name.as_str()).collect();
    let expected = [
        "announced",
        "preparing",
        "hold",
        "resume",
        "claimed",
        "approved",
        "started",
        "restoring",
        "impact observed",
        "closed",
    ];
    assert_eq!(moments, expected);
    let observed = &spans[0].1.events[8];
    assert_eq!(of(&observed.attributes, "allclear.impact.observed_ms"), Some(&Any::IntValue(3_210)));
}

#[test]
fn an_answer_is_taken_as_the_protocol_has_it() {
    let wish = Duration::from_secs(7);
    let said = |status: u16, body: &'static [u8]| {
        taken(
            &Reply { status, retry_after: Some(wish), location: None, body: body.to_vec() },
            &Secrets::of(["Bearer t0ken", "t0ken"]),
        )
    };
    let refused = |why: &str| ExportResult::Refused(why.to_owned());
    assert_eq!(said(200, b""), ExportResult::Accepted);
    assert_eq!(said(202, b"thanks"), ExportResult::Accepted);
    // partial_success { rejected_spans: 3, error_message: "old" }
    assert_eq!(said(200, b"\x0a\x07\x08\x03\x12\x03old"), refused("3 spans of the trace: old"));
    assert_eq!(said(200, b"\x0a\x05\x12\x03odd"), ExportResult::Accepted, "a warning is no refusal");
    for status in [429, 502, 503, 504] {
        assert!(matches!(said(status, b""), ExportResult::NotNow(_, after) if after == wish), "{status}");
    }
    // google.rpc.Status { code: 3, message: "bad" }
    assert_eq!(said(400, b"\x08\x03\x12\x03bad"), refused("the collector answered 400: bad"));
    assert_eq!(said(404, b"404 page not found\n"), refused("the collector answered 404: 404 page not found"));
    assert_eq!(said(403, b"who is Bearer t0ken or t0ken"), refused("the collector answered 403: who is *** or ***"));
    for status in [301, 401, 500, 999] {
        assert!(matches!(said(status, b""), ExportResult::Refused(_)), "{status}");
    }
}
