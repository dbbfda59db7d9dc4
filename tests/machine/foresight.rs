//! What the leader appends together, and that it is applied later.
//!
//! ```text
//! foresee LINE: the leader appends what the line proposes, and what it foresees to be due then
//! applied: all that was appended is applied now
//! ```

use std::fmt::Write;

use allclear::machine::command::{Command, Entry};
use allclear::machine::foresight::{brings_about, foresee};
use allclear::machine::id::VmName;

use crate::show;
use crate::world::World;

impl World {
    pub(crate) fn foresee(&mut self, line: &str) -> Result<String, String> {
        self.is_appending = true;
        let answer = self.obey(line);
        self.is_appending = false;
        answer
    }

    pub(crate) fn append(&mut self, by: &VmName, command: Command) -> String {
        let entry = |by: &VmName, command| Entry { at: self.situation.now, by: by.clone(), command };
        let told = entry(by, command);
        let decided = if brings_about(&told.command) {
            foresee(&self.state, &self.appended, &told, &self.situation)
        } else {
            Vec::new()
        };
        let mut answer = format!("appended {}\n", told.command.as_word());
        for command in &decided {
            let _ = writeln!(answer, "  and {}", show::command(command));
        }
        let decided = decided.into_iter().map(|command| entry(&self.situation.me, command));
        let entries: Vec<Entry> = std::iter::once(told.clone()).chain(decided).collect();
        self.appended.extend(entries);
        answer
    }

    pub(crate) fn applied(&mut self) -> String {
        let appended = std::mem::take(&mut self.appended);
        let verdicts = appended.into_iter().map(|entry| {
            let word = entry.command.as_word();
            format!("{word}: {}", self.commit(&entry.by, entry.command))
        });
        verdicts.collect()
    }
}
