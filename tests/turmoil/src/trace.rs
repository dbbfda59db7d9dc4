//! The events of a run, line by line. Two runs of a seed are equal when their lines are equal.

use std::collections::VecDeque;
use std::fmt::Arguments;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// Number of lines shown of a failed run.
const KEPT: usize = 80;

#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    /// Milliseconds of the simulation.
    now: u128,
    count: u64,
    hash: DefaultHasher,
    last: VecDeque<String>,
    is_shown: bool,
}

impl Trace {
    pub(crate) fn shown(is_shown: bool) -> Self {
        Self(Arc::new(Mutex::new(Lines { is_shown, ..Lines::default() })))
    }

    pub(crate) fn clock(&self, now: std::time::Duration) {
        self.lines().now = now.as_millis();
    }

    pub(crate) fn line(&self, what: Arguments<'_>) {
        let mut lines = self.lines();
        let line = format!("{:>9} {what}", lines.now);
        line.hash(&mut lines.hash);
        lines.count += 1;
        if lines.is_shown {
            // the reader may have closed the output
            let _ = writeln!(io::stdout(), "{line}");
        }
        lines.last.push_back(line);
        if lines.last.len() > KEPT {
            lines.last.pop_front();
        }
    }

    /// The hash of all lines, and the number of lines.
    pub(crate) fn digest(&self) -> (u64, u64) {
        let lines = self.lines();
        (lines.hash.finish(), lines.count)
    }

    pub(crate) fn end(&self) -> Vec<String> {
        self.lines().last.iter().cloned().collect()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Log lines of the replicas are part of the trace.
impl Write for Trace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line(format_args!("{}", String::from_utf8_lossy(bytes).trim_end()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Trace {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
