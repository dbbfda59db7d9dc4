//! The commands of a script about leaders, and about isolated replicas (`SPEC.md` 7).
//!
//! ```text
//! term N [turn=N]           consensus reports the leadership to the leader; every voter acknowledges the leader now
//! heard VM…                 these voters acknowledge the leader now
//! alone VM since=TIME [seen=TIME] [reaches=VM,…] [led=VM] [log=TIME]: DOCUMENT   actions of this isolated
//!                           replica; `log` where the log's time differs from the replica's wall clock
//! lead_without VM           the VM does not vote any more, and is no learner
//! journal VM: DOCUMENT      writes isolated approvals of these events into the journal
//! ended VM OUTCOME…         the outcome of the last journal entry
//! account VM [NUMBER]       reconciliation, under the current number or another       suspect VM NUMBER
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use allclear::core::isolation::approval::{blockers_to_override, event_to_approve, forecast};
use allclear::core::model::command::{Command, ReconcileJournal};
use allclear::core::model::id::{VmName, WorkloadName};
use allclear::core::model::isolated_approval::{IsolatedApproval, JournalEntry};
use allclear::core::model::isolated_blocker::ApprovalForecast;
use allclear::core::model::isolation::ImdsHealth;
use allclear::core::model::isolation::{IsolatedView, PeerAnswer};
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::Readiness;
use allclear::core::planning_input::{LeaderState, PlanningInput};

use crate::machine::world::World;
use crate::machine::{parse, show};

impl World {
    pub(crate) fn term(&mut self, rest: &str) -> Result<String, String> {
        let options = parse::options(rest.split_whitespace());
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is not a number"));
        let term = number(options.words.first().ok_or("term N")?)?;
        let turn = options.values.get("turn").map_or(Ok(1), |turn| number(turn))?;
        let (now, voters) = (self.input.now, self.input.members.clone());
        let acknowledged = voters.iter().map(|voter| (voter.clone(), now)).collect();
        self.input.leader = Some(LeaderState { term, turn, voters, acknowledged });
        self.input.leading_since = now;
        Ok(String::new())
    }

    pub(crate) fn heard(&mut self, names: &str) -> Result<String, String> {
        let lead = self.input.leader.as_mut().ok_or("nobody leads")?;
        lead.acknowledged.extend(names.split_whitespace().map(|name| (VmName::new(name), self.input.now)));
        Ok(String::new())
    }

    pub(crate) fn alone(&mut self, rest: &str) -> Result<String, String> {
        let (head, text) = rest.split_once(':').ok_or("alone VM since=TIME: …")?;
        let options = parse::options(head.split_whitespace());
        let me = VmName::new(options.words.first().ok_or("alone VM")?);
        let moment = |key: &str| Ok::<_, String>(options.span(key)?.map(|span| Timestamp(0).plus(span)));
        let since = moment("since")?.ok_or("since when?")?;
        let seen = moment("seen")?.unwrap_or(since);
        let document = parse::document(text, self.input.now)?;
        let peer = |name: &str| {
            let leader = options.values.get("led").filter(|led| **led == name);
            (VmName::new(name), PeerAnswer { leader: leader.map(|_| "somebody".into()), channel: ImdsHealth::Healthy })
        };
        let alone = IsolatedView {
            since,
            voters: self.input.members.clone(),
            reached: options.list("reaches").map(peer).collect(),
            log_time: moment("log")?.unwrap_or(self.input.now),
            tail: Vec::new(),
            readiness: options.list("unready").map(|name| (WorkloadName(name.into()), Readiness::NotReady)).collect(),
            seen_since: document.events.iter().map(|event| (event.id.clone(), seen)).collect::<BTreeMap<_, _>>(),
            document: Some(document.clone()),
            journal: self.journals.get(&me).cloned().unwrap_or_default(),
        };
        let lost = alone.unreachable_voters(&me);
        let input =
            PlanningInput { me, leader: None, quorum: false, isolated: Some(alone.clone()), ..self.input.clone() };
        let mut answer = String::new();
        for event in &document.events {
            let outlook = match forecast(&self.state, &input, &event.id).ok_or("it is not alone")? {
                ApprovalForecast::From(at) => format!("from {}", show::time(at)),
                ApprovalForecast::Not(obstacle) => format!("not: {obstacle}"),
            };
            let _ = writeln!(answer, "{}: {outlook}, out of reach: {}", event.id, lost.len());
            let asked = match blockers_to_override(&self.state, &input, &event.id).ok_or("it is not alone")? {
                Ok(obstacles) if obstacles.is_empty() => "nothing".into(),
                Ok(obstacles) => obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
                Err(obstacle) => format!("refused: {obstacle}"),
            };
            if !alone.is_one_of_a_pair() {
                let _ = writeln!(answer, "  an operator overrides: {asked}");
            }
        }
        if let Some(event) = event_to_approve(&self.state, &input) {
            let _ = writeln!(answer, "approves {} alone", event.id);
        }
        Ok(answer)
    }

    pub(crate) fn journal(&mut self, rest: &str) -> Result<String, String> {
        let (name, text) = rest.split_once(':').ok_or("journal VM: …")?;
        let (approver, now) = (VmName::new(name), self.input.now);
        for announcement in parse::document(text, now)?.events {
            let takeover = IsolatedApproval {
                approver: approver.clone(),
                at: now,
                alone_since: now.minus(Duration::from_secs(10)),
                out_of_reach: Vec::new(),
                requested_by: None,
                outcome: None,
                recorded: None,
            };
            self.journals.entry(approver.clone()).or_default().push(JournalEntry { announcement, approval: takeover });
        }
        Ok(String::new())
    }

    pub(crate) fn ended(&mut self, rest: &str) -> Result<String, String> {
        let (name, text) = rest.split_once(' ').ok_or("ended VM OUTCOME")?;
        let entries = self.journals.get_mut(&VmName::new(name)).ok_or("it has no journal")?;
        let last = entries.last_mut().ok_or("its journal is empty")?;
        last.approval.outcome = Some((parse::post_outcome(text)?, self.input.now));
        Ok(String::new())
    }

    pub(crate) fn account(&mut self, rest: &str) -> Result<String, String> {
        let mut words = rest.split_whitespace();
        let by = VmName::new(words.next().ok_or("account VM")?);
        let current = self.state.reconcile_states.get(&by).map_or(0, |known| known.number);
        let number = words.next().map_or(Ok(current), |word| word.parse().map_err(|_| "a number"))?;
        let journal = self.journals.get(&by).cloned().unwrap_or_default();
        Ok(self.commit(&by, Command::ReconcileJournal(ReconcileJournal { number, journal })))
    }

    pub(crate) fn lead_without(&mut self, name: &str) -> Result<String, String> {
        let lead = self.input.leader.as_mut().ok_or("nobody leads")?;
        lead.voters.retain(|voter| *voter != VmName::new(name));
        Ok(String::new())
    }

    pub(crate) fn suspects(&self) -> String {
        let names: Vec<_> = self.state.suspects().map(ToString::to_string).collect();
        if names.is_empty() { "nobody\n".into() } else { names.join(" ") + "\n" }
    }
}
