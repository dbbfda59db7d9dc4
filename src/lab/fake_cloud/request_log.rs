//! Every request that the endpoints received, and its result: the newest requests in memory, all requests in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;

use serde::Serialize;

/// Number of records in memory.
const KEPT: usize = 10_000;

/// One request.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct LoggedRequest {
    /// The request's number, from 1 in the order of arrival.
    pub(super) seq: u64,
    pub(super) at: String,
    /// Time of arrival in microseconds since 1970.
    pub(super) at_us: i64,
    pub(super) vm: String,
    pub(super) method: String,
    /// Path and query as received by the endpoint of the VM.
    pub(super) path: String,
    pub(super) body: String,
    /// `None` while the request is pending, and permanently when the request never got an answer.
    pub(super) status: Option<u16>,
    pub(super) fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<ApprovalRecord>,
}

/// The approvals in a POST.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ApprovalRecord {
    pub(super) events: Vec<EventResult>,
    /// Whether the request was the first approval of an event.
    pub(super) took_effect: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct EventResult {
    pub(super) id: String,
    /// `None` when the request never reached the platform.
    pub(super) result: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(super) struct RequestLog {
    records: VecDeque<LoggedRequest>,
    next: u64,
    file: Option<File>,
}

impl RequestLog {
    pub(super) fn new(file: Option<File>) -> Self {
        Self { next: 1, file, ..Self::default() }
    }

    pub(super) fn arrived(&mut self, record: LoggedRequest) -> u64 {
        let seq = self.next;
        self.next += 1;
        self.records.push_back(LoggedRequest { seq, ..record });
        if self.records.len() > KEPT {
            self.records.pop_front();
        }
        seq
    }

    pub(super) fn record(&mut self, seq: u64) -> Option<&mut LoggedRequest> {
        let first = self.records.front()?.seq;
        self.records.get_mut(usize::try_from(seq.checked_sub(first)?).ok()?)
    }

    /// Marks a request as over, answered or not: from now on the record of the request does not change.
    pub(super) fn settled(&mut self, seq: u64) {
        let Some(record) = self.record(seq) else { return };
        let Ok(mut line) = serde_json::to_vec(record) else { return };
        line.push(b'\n');
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&line)
        {
            tracing::warn!(%error, "request log closed after a failed write");
            self.file = None;
        }
    }

    /// The records in memory, oldest first.
    pub(super) fn records(&self) -> impl Iterator<Item = &LoggedRequest> {
        self.records.iter()
    }
}
