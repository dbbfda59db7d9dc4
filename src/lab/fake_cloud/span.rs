//! Durations in scenarios and orders: `"15m"` runs faster with the speed, a number of milliseconds does not.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Longer than any notice the platform gives.
const LONGEST: Duration = Duration::from_hours(24 * 366);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScenarioTime {
    Scaled(Duration),
    Real(Duration),
}

impl ScenarioTime {
    /// The duration on the clock.
    pub(super) fn real(self, speed: NonZeroU32) -> Duration {
        match self {
            Self::Scaled(span) => span / speed.get(),
            Self::Real(span) => span,
        }
    }
}

impl<'de> Deserialize<'de> for ScenarioTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanText)
    }
}

struct SpanText;

impl Visitor<'_> for SpanText {
    type Value = ScenarioTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a length of time such as \"15m\" (faster with the speed) or a number of real milliseconds")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ScenarioTime, E> {
        let span = humantime::parse_duration(text).map_err(|error| {
            E::custom(format!("\"{text}\" is no length of time ({error}); write \"15m\" or \"1500ms\""))
        })?;
        bounded(span).map(ScenarioTime::Scaled)
    }

    fn visit_u64<E: Error>(self, millis: u64) -> Result<ScenarioTime, E> {
        bounded(Duration::from_millis(millis)).map(ScenarioTime::Real)
    }

    fn visit_i64<E: Error>(self, millis: i64) -> Result<ScenarioTime, E> {
        let millis =
            u64::try_from(millis).map_err(|_| E::custom(format!("{millis} ms is in the past; use 0 or more")))?;
        self.visit_u64(millis)
    }
}

fn bounded<E: Error>(span: Duration) -> Result<Duration, E> {
    if span > LONGEST {
        return Err(E::custom("longer than 366 days; use less"));
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_run_faster_and_numbers_do_not() {
        let speed = NonZeroU32::new(10).unwrap();
        let read = |json: &str| serde_json::from_str::<ScenarioTime>(json).unwrap().real(speed);
        assert_eq!(read("\"15m\""), Duration::from_secs(90));
        assert_eq!(read("1500"), Duration::from_millis(1500));
    }

    #[test]
    fn what_is_no_length_of_time_is_refused_with_a_way_out() {
        for (json, word) in [("\"soon\"", "write"), ("-1", "0 or more"), ("\"400days\"", "366 days"), ("true", "15m")] {
            let error = serde_json::from_str::<ScenarioTime>(json).unwrap_err().to_string();
            assert!(error.contains(word), "{json}: {error}");
        }
    }
}
