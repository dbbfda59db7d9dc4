//! The attempts of this workload and their outcomes: the journal, and the controls of running attempts.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::journal::{Act, Journal, JournalLine, ended};
use super::journal_file::JournalFile;
use super::outcome::Outcome;
use super::step::Controls;
use allclear_wire::pb::allclear::workload::v1;
use allclear_wire::pb::allclear::workload::v1::report::News;

pub(super) struct AttemptTracker {
    book: Mutex<AttemptTable>,
    lines: Arc<tokio::sync::Mutex<JournalFile>>,
    /// There may be something to report.
    pub(super) news: Arc<Notify>,
    /// An attempt has ended.
    ended: Notify,
}

struct AttemptTable {
    journal: Journal,
    /// Lines for the journal's file, written with the next line or soon.
    unwritten: Vec<JournalLine>,
    running: BTreeMap<String, Arc<Controls>>,
    /// The number of ended attempts whose outcomes are being written.
    ending: usize,
}

impl AttemptTracker {
    pub(super) fn new(lines: JournalFile, journal: Journal) -> Self {
        let book = Mutex::new(AttemptTable { journal, unwritten: Vec::new(), running: BTreeMap::new(), ending: 0 });
        let lines = Arc::new(tokio::sync::Mutex::new(lines));
        Self { book, lines, news: Arc::default(), ended: Notify::new() }
    }

    /// The controls of a new attempt. The outcome of a known attempt is reported again at once; an error is the
    /// answer where the journal has no room.
    pub(super) fn receive(&self, step: &v1::Step, act: Act) -> Result<Option<Arc<Controls>>, Outcome> {
        let mut book = self.book();
        let is_new = book.journal.receive(step, act)?;
        Ok(is_new.then(|| {
            let controls = Arc::new(Controls::new(step.time_left_ms, self.news.clone()));
            book.running.insert(step.attempt.clone(), controls.clone());
            controls
        }))
    }

    /// Waits until every earlier attempt at the attempt's step has ended.
    pub(super) async fn turn_of(&self, attempt: &str) {
        loop {
            let ended = self.ended.notified();
            if self.book().journal.is_turn_of(attempt) {
                return;
            }
            ended.await;
        }
    }

    pub(super) fn last_outcome(&self, step: &v1::Step) -> Option<Outcome> {
        self.book().journal.last_outcome(&step.step, &step.attempt)
    }

    pub(super) async fn begin(self: &Arc<Self>, attempt: &str) -> io::Result<()> {
        let line = self.book().journal.begun(attempt);
        self.write(Vec::from_iter(line)).await
    }

    /// `is_begun`: the journal has the begin already. An outcome that cannot be written is reported regardless; the
    /// replica keeps the outcome.
    pub(super) async fn end(self: &Arc<Self>, attempt: &str, outcome: Outcome, is_begun: bool) {
        self.book().ending += 1;
        let begun = if is_begun { None } else { self.book().journal.begun(attempt) };
        let lines = begun.into_iter().chain([ended(attempt, &outcome)]).collect();
        if let Err(error) = self.write(lines).await {
            tracing::warn!(attempt, %error, "attempt outcome not written to the journal");
        }
        let mut book = self.book();
        book.journal.end(attempt, outcome);
        book.running.remove(attempt);
        book.ending -= 1;
        drop(book);
        self.ended.notify_waiters();
        self.news.notify_one();
    }

    pub(super) fn acknowledge(self: &Arc<Self>, attempt: String) {
        let mut book = self.book();
        if !book.journal.acknowledge(&attempt) {
            return;
        }
        book.unwritten.push(JournalLine::Acknowledged { attempt });
        let desk = self.clone();
        tokio::spawn(async move { desk.flush().await });
    }

    /// After a failed write the outcome is reported, and acknowledged, once more.
    pub(super) async fn flush(self: &Arc<Self>) {
        let _ = self.write(Vec::new()).await;
    }

    pub(super) fn controls(&self, attempt: &str) -> Option<Arc<Controls>> {
        self.book().running.get(attempt).cloned()
    }

    pub(super) fn knows(&self, attempt: &str) -> bool {
        self.book().journal.begun(attempt).is_some()
    }

    /// Whether the replica has yet to acknowledge the outcome of an ended attempt.
    pub(super) fn has_unsettled(&self) -> bool {
        let book = self.book();
        book.ending > 0 || book.journal.known().any(|record| record.outcome.is_some())
    }

    pub(super) fn known(&self) -> Vec<v1::Known> {
        let told = |outcome: &Option<Outcome>| outcome.as_ref().map(Outcome::told);
        let book = self.book();
        let known = book.journal.known();
        known.map(|record| v1::Known { attempt: record.attempt.clone(), outcome: told(&record.outcome) }).collect()
    }

    /// Reports for the replica: outcomes that are not in `told`, and the reports of handlers if `running`.
    pub(super) fn due(&self, told: &mut VecDeque<String>, running: bool) -> Vec<v1::Report> {
        let mut due = Vec::new();
        let book = self.book();
        for (attempt, controls) in book.running.iter().filter(|_| running) {
            let said = controls.take();
            let extension = said.needs_ms.map(|needs_ms| News::Extension(v1::Extension { needs_ms }));
            let news = said.progress.map(News::Progress).into_iter().chain(extension);
            due.extend(news.map(|news| v1::Report { attempt: attempt.clone(), news: Some(news) }));
        }
        for record in book.journal.known() {
            if let Some(outcome) = &record.outcome
                && !told.contains(&record.attempt)
            {
                told.push_back(record.attempt.clone());
                let news = Some(News::Outcome(outcome.told()));
                due.push(v1::Report { attempt: record.attempt.clone(), news });
            }
        }
        due
    }

    pub(super) fn has_something_to_say(&self) -> bool {
        self.book().running.values().any(|controls| controls.has_said())
    }

    async fn write(self: &Arc<Self>, mut new: Vec<JournalLine>) -> io::Result<()> {
        let mut lines = self.lines.clone().lock_owned().await;
        new.append(&mut self.book().unwritten);
        if new.is_empty() {
            return Ok(());
        }
        let desk = self.clone();
        let written = tokio::task::spawn_blocking(move || lines.append(&new, || desk.book().journal.lines()));
        written.await.map_err(io::Error::other)?
    }

    fn book(&self) -> MutexGuard<'_, AttemptTable> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
