//! The facts that a hook over HTTP receives: the variables of a command hook, and the facts for the headers.

use std::io::{self, Read};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::hooks::text::percent_encoded;
use crate::http_client::header::{HeaderMap, HeaderName};

const MAX_FACTS: u64 = 1 << 20;

pub(super) struct Facts {
    facts: Map<String, Value>,
    deadline: Instant,
}

impl Facts {
    pub(super) fn of_standard_input() -> Result<Self, String> {
        let mut text = String::new();
        let read = io::stdin().lock().take(MAX_FACTS).read_to_string(&mut text);
        read.map_err(|error| format!("the facts of the hook cannot be read from standard input: {error}"))?;
        Self::read(&text)
    }

    pub(super) fn read(text: &str) -> Result<Self, String> {
        let facts: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| format!("standard input is not the facts of a hook as JSON: {error}"))?;
        let left = facts
            .get("time_left_ms")
            .and_then(Value::as_u64)
            .ok_or("`time_left_ms` is missing in the facts of the hook")?;
        // No hook runs for longer than a day.
        let left = Duration::from_millis(left).min(Duration::from_hours(24));
        Ok(Self { facts, deadline: Instant::now() + left })
    }

    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.facts.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.facts.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    pub(super) fn body(&self) -> Vec<u8> {
        Value::Object(self.facts.clone()).to_string().into_bytes()
    }

    /// A missing fact has no header.
    pub(super) fn headers(&self) -> HeaderMap {
        let key = self.idempotency_key();
        let headers = [
            ("idempotency-key", key.as_str()),
            ("allclear-fence", self.text("fence")),
            ("allclear-deadline", self.text("deadline")),
            ("traceparent", self.text("traceparent")),
        ];
        let there = headers.into_iter().filter(|(_, value)| !value.is_empty());
        let printable = |value: &str| percent_encoded(value, |byte| byte.is_ascii_graphic() && byte != b'%');
        // Names may hold any letter, a header may not.
        there
            .filter_map(|(name, value)| Some((HeaderName::from_static(name), printable(value).parse().ok()?)))
            .collect()
    }

    /// A repeated run has the key of the first run, and so has a repeated undo. Each `confirm` has a new key: an old
    /// answer is worthless.
    fn idempotency_key(&self) -> String {
        let step = self.text("step");
        match self.text("intent") {
            "confirm" => format!("{step}/confirm/{}", self.text("attempt")),
            "undo" => format!("{step}/undo"),
            _ => step.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(intent: &str) -> HeaderMap {
        let facts = format!(
            r#"{{"time_left_ms": 1000, "step": "E1@5/db-0/größe 1/drain/0", "attempt": "E1.7", "fence": "3.7",
                 "deadline": "2100-01-01T00:00:00Z", "traceparent": null, "intent": "{intent}"}}"#
        );
        Facts::read(&facts).unwrap().headers()
    }

    #[test]
    fn to_run_again_has_the_same_key_and_to_ask_again_a_new_one() {
        let key = |intent| headers(intent)["Idempotency-Key"].to_str().unwrap().to_owned();
        assert_eq!(key("run"), "E1@5/db-0/gr%C3%B6%C3%9Fe%201/drain/0");
        assert_eq!(key("undo"), "E1@5/db-0/gr%C3%B6%C3%9Fe%201/drain/0/undo");
        assert_eq!(key("confirm"), "E1@5/db-0/gr%C3%B6%C3%9Fe%201/drain/0/confirm/E1.7");
    }

    #[test]
    fn what_is_not_there_is_no_header() {
        let headers = headers("run");
        assert_eq!(headers.len(), 3);
        assert!(headers.contains_key("Allclear-Fence") && headers.contains_key("Allclear-Deadline"));
    }

    #[test]
    fn facts_that_are_none_are_told() {
        for text in ["", "[]", "{}", r#"{"time_left_ms": "soon"}"#] {
            assert!(Facts::read(text).is_err(), "{text}");
        }
    }
}
