//! Outcomes from the answers of a server (`deploy/docs/hooks.md`, HTTP hooks). A pure function from replies to outcomes.

use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Duration;

use serde_json::Value;

use crate::hooks::{HookOutcome, one_line};
use crate::http_client::{ExchangeError, Reply, StatusCode};

/// The progress of a running job, as reported by the server.
#[derive(Default, PartialEq, Debug)]
pub(super) struct HttpProgress {
    pub(super) progress: Option<String>,
    /// From now on.
    pub(super) expected_end: Option<Duration>,
    pub(super) retry_after: Option<Duration>,
}

/// The answer to a POST: the address for progress queries, or the outcome.
pub(super) fn to_the_post(reply: Result<Reply, ExchangeError>) -> ControlFlow<HookOutcome, String> {
    let reply = match reply {
        Ok(reply) => reply,
        Err(ExchangeError::NotSent(why)) => return Break(HookOutcome::Blocked(format!("nothing was sent: {why}"))),
        Err(ExchangeError::Lost(why)) => return Break(HookOutcome::Unknown(format!("the answer was lost: {why}"))),
    };
    Break(match reply.status {
        202 => match reply.location {
            Some(location) => return Continue(location),
            None => HookOutcome::Unknown("202 without a Location: the outcome of the hook cannot be read".to_owned()),
        },
        200..=299 => ended(&reply),
        // Nothing was begun, by these statuses; a 503 without `Retry-After` may come from a proxy whose server died.
        425 | 429 => HookOutcome::Blocked(why(&reply)),
        503 if reply.retry_after.is_some() => HookOutcome::Blocked(why(&reply)),
        300..=399 => HookOutcome::Failed(format!("{}; redirects are not followed", why(&reply))),
        400..=499 => refused(&reply),
        _ => HookOutcome::Unknown(why(&reply)),
    })
}

/// The answer to a progress query. A temporarily unreachable server may still be at work.
pub(super) fn how_far(reply: Result<Reply, ExchangeError>) -> ControlFlow<HookOutcome, HttpProgress> {
    let Ok(reply) = reply else { return Continue(HttpProgress::default()) };
    Break(match reply.status {
        202 => return Continue(told(&reply)),
        200..=299 => ended(&reply),
        408 | 425 | 429 | 500..=599 => {
            return Continue(HttpProgress { retry_after: reply.retry_after, ..HttpProgress::default() });
        }
        404 | 410 => HookOutcome::Unknown(why(&reply)),
        409 | 412 => refused(&reply),
        400..=499 if named_outcome(&reply).is_some() => refused(&reply),
        _ => HookOutcome::Unknown(why(&reply)),
    })
}

/// The answer to the DELETE of a cancelled job. Only a clear answer means that the server has stopped: a server at work
/// would go on beside the next attempt.
pub(super) fn to_the_cancellation(reply: Result<Reply, ExchangeError>) -> HookOutcome {
    let unclear = |why: String| HookOutcome::Unknown(format!("the server did not acknowledge the cancellation: {why}"));
    match reply {
        Ok(reply) if reply.status == 202 || !(200..=299).contains(&reply.status) => unclear(why(&reply)),
        Ok(reply) if reply.body.trim_ascii().is_empty() => HookOutcome::Cancelled,
        Ok(reply) if named_outcome(&reply).as_deref() == Some("cancelled") => HookOutcome::Cancelled,
        Ok(reply) => ended(&reply),
        Err(failure) => unclear(failure.into_reason()),
    }
}

/// The outcome in a body; an empty body is done. An unparsable answer may come from any server.
fn ended(reply: &Reply) -> HookOutcome {
    if reply.body.trim_ascii().is_empty() {
        return HookOutcome::Done;
    }
    let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let reason = || said.get("reason").and_then(Value::as_str).unwrap_or("the answer gives no reason").to_owned();
    match said.get("outcome").and_then(Value::as_str) {
        Some("done") => HookOutcome::Done,
        Some("not_applicable") => HookOutcome::NotApplicable,
        Some("not_done") => HookOutcome::NotDone,
        Some("failed") => HookOutcome::Failed(reason()),
        Some("blocked") => HookOutcome::Blocked(reason()),
        Some("unknown") => HookOutcome::Unknown(reason()),
        Some(other) => HookOutcome::Unknown(format!("{} with the unknown outcome {other:?}", line_of(reply.status))),
        None => HookOutcome::Unknown(format!(
            "{} without an outcome: {}",
            line_of(reply.status),
            first_line(&String::from_utf8_lossy(&reply.body))
        )),
    }
}

/// The outcome that a refusal names in its body, otherwise a failure. A refusal that says "done" contradicts itself.
fn refused(reply: &Reply) -> HookOutcome {
    match named_outcome(reply).as_deref() {
        Some("blocked") => HookOutcome::Blocked(why(reply)),
        Some("done" | "not_applicable" | "not_done" | "unknown") => HookOutcome::Unknown(why(reply)),
        _ => HookOutcome::Failed(why(reply)),
    }
}

fn named_outcome(reply: &Reply) -> Option<String> {
    let said: Value = serde_json::from_slice(&reply.body).ok()?;
    said.get("outcome").and_then(Value::as_str).map(Into::into)
}

fn told(reply: &Reply) -> HttpProgress {
    let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let seconds = said.get("expected_end_s").and_then(Value::as_f64);
    HttpProgress {
        progress: said.get("progress").and_then(Value::as_str).map(first_line).filter(|text| !text.is_empty()),
        expected_end: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        retry_after: reply.retry_after,
    }
}

/// The status, and the reason in the body.
pub(super) fn why(reply: &Reply) -> String {
    let status = line_of(reply.status);
    let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let body = String::from_utf8_lossy(&reply.body);
    let text = first_line(said.get("reason").and_then(Value::as_str).unwrap_or(&body));
    if text.is_empty() { status } else { format!("{status}: {text}") }
}

fn line_of(status: u16) -> String {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    name.map_or_else(|| status.to_string(), |name| format!("{status} {name}"))
}

/// The first line, fit for printing. The reader shortens the text after removing secrets.
fn first_line(text: &str) -> String {
    one_line(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, body: body.into(), ..Reply::default() }
    }

    fn posted(reply: Reply) -> HookOutcome {
        match to_the_post(Ok(reply)) {
            Break(ended) => ended,
            Continue(location) => panic!("accepted at {location}"),
        }
    }

    #[test]
    fn an_outcome_is_only_what_says_so() {
        let failed = |reason: &str| HookOutcome::Failed(reason.to_owned());
        let blocked = |reason: &str| HookOutcome::Blocked(reason.to_owned());
        for (status, body, expected) in [
            (200, "", HookOutcome::Done),
            (204, "", HookOutcome::Done),
            (200, r#"{"outcome": "done", "reason": "ignored"}"#, HookOutcome::Done),
            (200, r#"{"outcome": "not_applicable"}"#, HookOutcome::NotApplicable),
            (200, r#"{"outcome": "not_done"}"#, HookOutcome::NotDone),
            (200, r#"{"outcome": "failed", "reason": "disk full"}"#, failed("disk full")),
            (200, r#"{"outcome": "failed"}"#, failed("the answer gives no reason")),
            (200, r#"{"outcome": "blocked", "reason": "no standby"}"#, blocked("no standby")),
            (200, r#"{"outcome": "unknown", "reason": "lost it"}"#, HookOutcome::Unknown("lost it".into())),
            (400, "first\nsecond", failed("400 Bad Request: first")),
            (404, "", failed("404 Not Found")),
            (409, r#"{"reason": "seen 3.9"}"#, failed("409 Conflict: seen 3.9")),
            (412, "never here", failed("412 Precondition Failed: never here")),
            (412, r#"{"outcome": "blocked", "reason": "no standby"}"#, blocked("412 Precondition Failed: no standby")),
            (422, r#"{"outcome": "failed", "reason": "no"}"#, failed("422 Unprocessable Entity: no")),
            (400, r#"{"outcome": "error", "reason": "no"}"#, failed("400 Bad Request: no")),
            (307, "", failed("307 Temporary Redirect; redirects are not followed")),
            (425, "", blocked("425 Too Early")),
            (429, "busy", blocked("429 Too Many Requests: busy")),
        ] {
            assert_eq!(posted(reply(status, body)), expected, "{status} {body}");
        }
    }

    #[test]
    fn whatever_is_not_understood_is_unknown() {
        for (status, body) in [
            (200, "OK"),
            (200, "<html>"),
            (200, "{}"),
            (200, "[]"),
            (200, r#"{"outcome": "splendid"}"#),
            (200, r#"{"outcome": "cancelled"}"#),
            (202, "without a Location"),
            (409, r#"{"outcome": "done"}"#),
            (400, r#"{"outcome": "unknown"}"#),
            (500, "oops"),
            (502, ""),
            (503, "a proxy says so"),
            (504, ""),
            (600, ""),
        ] {
            assert!(matches!(posted(reply(status, body)), HookOutcome::Unknown(_)), "{status} {body}");
        }
    }

    #[test]
    fn only_with_a_time_to_come_again_is_a_503_blocked() {
        let again = Reply { retry_after: Some(Duration::from_secs(5)), ..reply(503, "no standby") };
        assert_eq!(posted(again), HookOutcome::Blocked("503 Service Unavailable: no standby".into()));
    }

    #[test]
    fn what_was_not_sent_is_blocked_and_what_was_lost_is_unknown() {
        let silence = |silence| match to_the_post(Err(silence)) {
            Break(ended) => ended,
            Continue(_) => panic!("silence is no answer"),
        };
        assert!(matches!(silence(ExchangeError::NotSent("refused".into())), HookOutcome::Blocked(_)));
        assert!(matches!(silence(ExchangeError::Lost("reset".into())), HookOutcome::Unknown(_)));
    }

    #[test]
    fn a_job_is_cancelled_if_the_server_says_so_and_otherwise_ended_as_it_says_or_unknown() {
        for (status, body) in [(200, ""), (204, ""), (200, r#"{"outcome": "cancelled"}"#)] {
            assert_eq!(to_the_cancellation(Ok(reply(status, body))), HookOutcome::Cancelled, "{status} {body}");
        }
        assert_eq!(to_the_cancellation(Ok(reply(200, r#"{"outcome": "done"}"#))), HookOutcome::Done);
        let failed = reply(200, r#"{"outcome": "failed", "reason": "no space"}"#);
        assert_eq!(to_the_cancellation(Ok(failed)), HookOutcome::Failed("no space".into()));
        for (status, body) in
            [(202, ""), (200, "stopping"), (307, ""), (404, ""), (405, ""), (409, ""), (410, ""), (500, ""), (503, "")]
        {
            let ended = to_the_cancellation(Ok(reply(status, body)));
            assert!(matches!(ended, HookOutcome::Unknown(_)), "{status} {body}: {ended}");
        }
        for silence in [ExchangeError::NotSent("refused".into()), ExchangeError::Lost("reset".into())] {
            assert!(matches!(to_the_cancellation(Err(silence)), HookOutcome::Unknown(_)));
        }
    }

    #[test]
    fn while_it_goes_on_progress_is_told_and_trouble_is_waited_out() {
        let body = r#"{"progress": "3 of 7\nrest", "expected_end_s": 1.5}"#;
        let expected = HttpProgress {
            progress: Some("3 of 7".into()),
            expected_end: Some(Duration::from_millis(1500)),
            retry_after: None,
        };
        assert_eq!(how_far(Ok(reply(202, body))), Continue(expected));
        for status in [408, 425, 429, 500, 503] {
            assert_eq!(how_far(Ok(reply(status, ""))), Continue(HttpProgress::default()), "{status}");
        }
        assert_eq!(how_far(Err(ExchangeError::NotSent(String::new()))), Continue(HttpProgress::default()));
        assert_eq!(how_far(Ok(reply(200, ""))), Break(HookOutcome::Done));
        assert!(matches!(how_far(Ok(reply(404, ""))), Break(HookOutcome::Unknown(_))));
        assert!(matches!(how_far(Ok(reply(410, ""))), Break(HookOutcome::Unknown(_))));
        assert!(matches!(how_far(Ok(reply(409, ""))), Break(HookOutcome::Failed(_))));
    }
}
