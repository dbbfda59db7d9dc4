//! What a hook received and answered, for people and programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use allclear_server::hooks::HookOutcome;
use allclear_server::replica::sanitize::sanitize;

/// The hook's input and answer.
#[derive(Serialize)]
pub(in crate::cli) struct Shown {
    pub(super) hook: String,
    pub(super) runs: Vec<String>,
    pub(super) user: Option<String>,
    pub(super) told: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(in crate::cli) answer: HookOutcome,
    #[serde(serialize_with = "as_seconds")]
    pub(super) seconds: Duration,
    pub(in crate::cli) stdout: String,
    pub(in crate::cli) stderr: String,
}

fn as_seconds<S: serde::Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.as_secs_f64())
}

impl Shown {
    pub(super) fn told(&self) -> String {
        let mut text = format!("{} runs {}", self.hook, self.runs.join(" "));
        if let Some(user) = &self.user {
            let _ = write!(text, " as {user}");
        }
        text.push_str("\nthe hook receives\n");
        for (name, value) in &self.told {
            let _ = writeln!(text, "  {name}={value}");
        }
        for (name, said) in [("prints", &self.stdout), ("writes to standard error", &self.stderr)] {
            if !said.is_empty() {
                let _ = writeln!(text, "the hook {name}\n  {}", said.trim_end().replace('\n', "\n  "));
            }
        }
        let _ = writeln!(text, "the hook ends after {:.1} s: {}", self.seconds.as_secs_f64(), self.answer);
        text.lines().fold(String::new(), |text, line| text + &sanitize(line) + "\n")
    }
}
