//! The commands of a script about operator requests (`SPEC.md` 11).
//!
//! ```text
//! hold EVENT until=SPAN [why…]    release EVENT [why…]    pause until=SPAN [why…]    resume [why…]    SPAN from now
//! prepare EVENT [until=SPAN] [why…]: from SPAN from now on
//! approve EVENT [REVISION] [why…]: as of this revision, or the current revision
//! skip EVENT VM W PHASE [why…]    retry EVENT VM W PHASE [why…]    wish [change…]    wishes: the requests about no single event
//! knows VM N: the VM has acknowledged requests up to N    unaware N: replicas which may not know of request N
//! ```

use std::fmt::Write;
use std::time::Duration;

use allclear::core::isolation::unaware_replicas::unaware_replicas;
use allclear::core::model::command::{Command, RequestAction};
use allclear::core::model::id::{EventId, VmName};
use allclear::core::model::operator::OperatorRequest;
use allclear::core::model::time::Timestamp;

use crate::machine::parse;
use crate::machine::proposal::{hook, member};
use crate::machine::show;
use crate::machine::world::World;

impl World {
    pub(crate) fn ask(&mut self, word: &str, rest: &str) -> Result<String, String> {
        let options = parse::options(rest.split_whitespace());
        let until = self.input.now.plus(options.span("until")?.unwrap_or(Duration::ZERO));
        let mut words = options.words.into_iter();
        let mut next = || words.next().ok_or("too few words");
        let what = match word {
            "hold" => OperatorRequest::Hold {
                event: EventId::new(next()?),
                until,
                no_hooks: words.clone().any(|word| word == "no_hooks"),
            },
            "release" => OperatorRequest::Release { event: EventId::new(next()?) },
            "pause" => OperatorRequest::Pause { until },
            "resume" => OperatorRequest::Resume,
            "prepare" => OperatorRequest::Prepare { event: EventId::new(next()?), from: until },
            "approve" => {
                let event = EventId::new(next()?);
                let current = self.state.open.get(&event).map_or(0, |event| event.revision);
                let named = words.clone().next().and_then(|word| word.parse().ok());
                if named.is_some() {
                    words.next();
                }
                let over_budget = words.clone().any(|word| word == "over_budget");
                OperatorRequest::Approve { event, revision: named.unwrap_or(current), over_budget }
            }
            "restored" => OperatorRequest::Restored { member: member(next()?, next()?) },
            "skip" | "retry" => {
                let (event, vm) = (EventId::new(next()?), next()?);
                let (name, phase) = (next()?, next()?);
                let (member, hook) = (member(vm, name), hook(phase)?);
                if word == "skip" {
                    OperatorRequest::Skip { event, member, hook }
                } else {
                    OperatorRequest::Retry { event, member, hook }
                }
            }
            _ => OperatorRequest::ClusterChange { what: rest.into() },
        };
        let why: Vec<&str> = words.collect();
        let why = if why.is_empty() { "maintenance".into() } else { why.join(" ") };
        let by = self.input.members.last().ok_or("nobody is asked")?.clone();
        Ok(self.commit(&by, Command::RequestAction(RequestAction { what, who: format!("uid 0 on {by}"), reason: why })))
    }

    pub(crate) fn knows(&mut self, rest: &str) -> Result<String, String> {
        let (vm, number) = rest.split_once(' ').ok_or("knows VM N")?;
        let number = number.parse().map_err(|_| "a wish has a number")?;
        self.input.peers.get_mut(&VmName::new(vm)).ok_or("no such VM")?.operator_seq = number;
        Ok(String::new())
    }

    pub(crate) fn unaware(&self, number: &str) -> Result<String, String> {
        let number = number.parse().map_err(|_| "a wish has a number")?;
        let names: Vec<_> =
            unaware_replicas(&self.state, &self.input, number).iter().map(ToString::to_string).collect();
        Ok(if names.is_empty() { "everybody knows\n".into() } else { format!("unaware: {}\n", names.join(" ")) })
    }

    pub(crate) fn wishes(&self) -> String {
        let mut text = String::new();
        for wish in &self.state.operator_records {
            let at: Timestamp = wish.at;
            let _ = writeln!(
                text,
                "{} at {}, by {}: {:?}, {}",
                wish.number,
                show::time(at),
                wish.who,
                wish.what,
                wish.reason
            );
        }
        text
    }
}
