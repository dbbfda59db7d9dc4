//! Log lines on standard error: text for people at a terminal, one JSON object per line for everything else.
//! What is wanted comes as an argument; this file reads no environment.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Why logging did not start.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error("the log filter {filter:?} cannot be read: {reason}; write it as \"info\" or \"info,allclear=debug\"")]
    Filter { filter: String, reason: String },
    #[error("logging was started before")]
    Started,
}

/// Starts logging to standard error, once per process.
pub fn start(filter: &str, colours_refused: bool) -> Result<(), LoggingError> {
    let shape = if !std::io::stderr().is_terminal() {
        Shape::Json
    } else if colours_refused {
        Shape::Plain
    } else {
        Shape::Coloured
    };
    let subscriber = subscriber(filter, shape, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LoggingError::Started)
}

#[derive(Clone, Copy)]
enum Shape {
    Json,
    Plain,
    Coloured,
}

type Subscriber = Box<dyn tracing::Subscriber + Send + Sync>;

fn subscriber(
    filter: &str,
    shape: Shape,
    out: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> Result<Subscriber, LoggingError> {
    let level = EnvFilter::try_new(filter)
        .map_err(|error| LoggingError::Filter { filter: filter.to_owned(), reason: error.to_string() })?;
    let lines = tracing_subscriber::fmt().with_env_filter(level).with_writer(out);
    Ok(match shape {
        Shape::Json => Box::new(lines.json().flatten_event(true).with_current_span(true).finish()),
        Shape::Plain => Box::new(lines.with_ansi(false).finish()),
        Shape::Coloured => Box::new(lines.with_ansi(true).finish()),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, shape: Shape) -> String {
        let kept = Kept::default();
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
        let logged = logged("info", Shape::Json);
        let lines: Vec<serde_json::Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["message"], &lines[0]["event"]), (&"announced".into(), &"E-1".into()));
    }

    #[test]
    fn only_colours_that_are_wanted_are_written() {
        assert!(logged("info", Shape::Coloured).contains('\u{1b}'));
        assert!(!logged("info", Shape::Plain).contains('\u{1b}'));
    }

    #[test]
    fn the_filter_chooses_by_level_and_target() {
        let logged = logged("info,openraft=warn", Shape::Plain);
        assert!(logged.contains("announced") && !logged.contains("heartbeat"), "{logged}");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_told() {
        let error = subscriber("allclear=loud", Shape::Plain, std::io::sink).err().unwrap();
        assert!(error.to_string().starts_with("the log filter \"allclear=loud\" cannot be read: "), "{error}");
    }
}
