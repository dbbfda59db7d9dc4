//! Clients which write without pause during a test.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use allclear::testbed::writers;

use super::record::WriteRecord;
use super::trio::{DatabaseClient, System, ThreeNodeBed, until};

pub(crate) struct Writers(writers::Writers);

impl Writers {
    /// Returns when each client is at work.
    pub(crate) fn start<S: System>(trio: &Arc<ThreeNodeBed>) -> Self {
        let writers = Self(writers::Writers::start(trio, connect::<S>, Duration::ZERO));
        writers.go_on();
        writers
    }

    /// Waits until each client has written some more, so no gap is left open.
    pub(crate) fn go_on(&self) {
        let before = self.0.progress();
        until("acknowledged writes of every client", || {
            let now = self.0.progress();
            let told = || format!("they had {:?}, and have {:?}", before.counts, now.counts);
            now.is_beyond(&before).then_some(()).ok_or_else(told)
        });
    }

    /// Returns the clients' record, with every gap closed.
    pub(crate) fn stop(self) -> WriteRecord {
        self.go_on();
        self.0.end().unwrap()
    }
}

fn connect<S: System>(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<Box<dyn DatabaseClient>> {
    Ok(Box::new(S::connect(trio, place, patience)?))
}
