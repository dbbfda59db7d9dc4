//! Log lines on standard error: text at a terminal, otherwise one JSON object per line. The filter is an argument; this
//! file reads no environment. Text from outside in a line starts no line of its own, controls no terminal, and hides
//! nothing.

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::replica::sanitize::{harmless_json, sanitize};

/// Starts logging to standard error, once per process.
pub fn start(filter: &str) -> Result<(), String> {
    let shape = if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json };
    let subscriber = subscriber(filter, shape, io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "logging is already started".into())
}

#[derive(Clone, Copy)]
enum LogFormat {
    Json,
    Text,
}

/// A writer of sanitized lines; each write is one line.
struct Harmless<W> {
    shape: LogFormat,
    out: W,
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = match self.shape {
            LogFormat::Json => harmless_json(line),
            LogFormat::Text => sanitize(line),
        };
        self.out.write_all((line + "\n").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

type Subscriber = Box<dyn tracing::Subscriber + Send + Sync>;

fn subscriber<W: Write + 'static>(
    filter: &str,
    shape: LogFormat,
    out: impl Fn() -> W + Send + Sync + 'static,
) -> Result<Subscriber, String> {
    let hint = "write it as \"info\" or \"info,allclear=debug\"";
    let wanted =
        wanted(filter).map_err(|reason| format!("the log filter {filter:?} cannot be read: {reason}; {hint}"))?;
    let out = move || Harmless { shape, out: out() };
    let (registry, lines) = (tracing_subscriber::registry(), fmt::layer().with_writer(out).with_ansi(false));
    Ok(match shape {
        LogFormat::Json => {
            Box::new(registry.with(lines.json().flatten_event(true).with_current_span(true)).with(wanted))
        }
        LogFormat::Text => Box::new(registry.with(lines).with(wanted)),
    })
}

/// Parses a filter. Empty parts are skipped; the library would take an empty part for "errors only".
fn wanted(filter: &str) -> Result<Targets, String> {
    let parts: Vec<&str> = filter.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let unreadable =
        |part: &&&str| part.ends_with('=') || part.contains(|c: char| c.is_whitespace() || "[{".contains(c));
    match parts.iter().find(unreadable) {
        Some(part) => Err(format!("{part:?} is neither a level nor a target and its level")),
        None if parts.is_empty() => Err("the part names no level".into()),
        None => parts.join(",").parse().map_err(|error: ParseError| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::filter::LevelFilter;

    use super::*;
    use crate::replica::sanitize::is_hidden;

    #[derive(Clone, Default)]
    struct CapturedLog(Arc<Mutex<Vec<u8>>>);

    impl Write for CapturedLog {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, shape: LogFormat) -> String {
        let kept = CapturedLog::default();
        let out = kept.clone();
        let subscriber = subscriber(filter, shape, move || out.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(event = "E-1", "announced");
            tracing::info!(target: "openraft::core", "heartbeat");
        });
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_line_for_machines_is_one_json_object() {
        let logged = logged("info", LogFormat::Json);
        let lines: Vec<serde_json::Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["message"], &lines[0]["event"]), (&"announced".into(), &"E-1".into()));
    }

    #[test]
    fn whatever_a_name_holds_it_stays_within_its_line() {
        let name = "db-0\u{1b}[2J\r\n{\"level\":\"ERROR\"}\u{7}\u{85}\u{9b}31m\u{202e}\u{2028}\u{feff}m\"end";
        let told = |shape| {
            let kept = CapturedLog::default();
            let out = kept.clone();
            let subscriber = subscriber("info", shape, move || out.clone()).unwrap();
            tracing::subscriber::with_default(subscriber, || {
                tracing::info!(shown = %name, debugged = ?name, text = name, "announced {name}");
            });
            let bytes = kept.0.lock().unwrap().clone();
            String::from_utf8(bytes).unwrap()
        };
        let json = told(LogFormat::Json);
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((line["shown"].as_str(), line["text"].as_str()), (Some(name), Some(name)));
        assert_eq!(line["message"], format!("announced {name}"));
        for shown in [json, told(LogFormat::Text)] {
            let line = shown.strip_suffix('\n').unwrap();
            assert!(!line.contains(is_hidden), "{line:?}");
        }
    }

    #[test]
    fn the_filter_chooses_by_level_and_target() {
        let logged = logged("info,openraft=warn", LogFormat::Text);
        assert!(logged.contains("announced") && !logged.contains("heartbeat"), "{logged}");
        let logged_loosely = self::logged(" info, , openraft=warn,", LogFormat::Text);
        assert!(logged_loosely.contains("announced") && !logged_loosely.contains("heartbeat"), "{logged_loosely}");
    }

    #[test]
    fn what_is_not_wanted_is_not_even_asked_for() {
        let subscriber = subscriber("info,openraft=warn", LogFormat::Json, io::sink).unwrap();
        assert_eq!(subscriber.max_level_hint(), Some(LevelFilter::INFO));
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_told() {
        for filter in ["allclear=loud", "[poll]=debug", "info openraft=warn", "info,x=", " , "] {
            let error = subscriber(filter, LogFormat::Text, io::sink).err().unwrap();
            assert!(error.starts_with(&format!("the log filter {filter:?} cannot be read: ")), "{error}");
        }
    }
}
