//! The commands of a script, and the cluster on which the commands act.
//!
//! ```text
//! cluster VM…                               workload VM|* NAME [group=G] [after=W,…]: PHASE [key=value…]; …
//! group VM|* NAME max=N                     rename VM OLD [NEW …, as workload]: in one registration
//! policy user_budget=2m foreign=approve-user …     rule NAME action=A [type=T] [source=S] [phases=P,…] [budget=…]
//! report VM|*: nothing | STATUS SOURCE TYPE EVENT VM,… [notbefore=[+]15m] [duration=9s]; …    repeat VM: as before
//! overtaken VM: as report, but another report came before
//! now TIME      wait SPAN                   lead VM   quorum|no_quorum
//! unreachable|reachable|stall|healthy VM…   leave VM…: these VMs are no members any more
//! join VM…: these VMs are members which have yet to register
//! acknowledges VM…: may approve through the control plane
//! seen|unseen VM…: the VM's document is fresh, or from before the script
//! plan: the leader's current proposal       propose: the last plan, now
//! step: plan and propose                    run: step until nothing is pending
//! errands VM [forgotten=ATTEMPT]    explain EVENT    show EVENT    events
//! settle ATTEMPT OUTCOME… [by=VM]           posted ATTEMPT OUTCOME… [by=VM]
//! claim EVENT VM REASON    expire ATTEMPT    discount VM    forget EVENT    take|give_back|last_call EVENT
//! waive EVENT VM W PHASE    begin EVENT VM W PHASE on=VM    dismiss VM    drill rehearsal|dry_run ANNOUNCEMENT
//! end_drill EVENT           from `claim` on, commands are raw proposals, as a wrong planner would make
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use allclear::core::apply::apply;
use allclear::core::assignments::{Assignment, assignments, predates_disk};
use allclear::core::explain::{approvable_by_hand, explain, hooks_run_again};
use allclear::core::model::blocker::Blocker;
use allclear::core::model::command::{ApplyResult, Command, Entry, RegisterWorkloads, ReportDocument};
use allclear::core::model::document::{EventType, Source};
use allclear::core::model::event::Event;
use allclear::core::model::id::{AttemptId, EventId, GroupName, VmName};
use allclear::core::model::isolated_approval::JournalEntry;
use allclear::core::model::isolation::ImdsHealth;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::treatment::Action;
use allclear::core::model::workload::{Group, Phase, Workload};
use allclear::core::plan::plan;
use allclear::core::planning_input::{PeerHealth, PlanningInput, Timing};
use allclear::core::policy::{Foreign, Policy, Rule};
use allclear::core::verify::invariants;
use allclear::core::verify::transition;

use crate::machine::{parse, show};

/// Limit of steps: a step which is never done would go on for ever.
const STEPS_AT_MOST: usize = 20;

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) input: PlanningInput,
    workloads: BTreeMap<VmName, Vec<Workload>>,
    groups: BTreeMap<VmName, Vec<Group>>,
    planned: Vec<Command>,
    pub(crate) journals: BTreeMap<VmName, Vec<JournalEntry>>,
}

/// The words of requests of operators.
const REQUESTS: [&str; 10] =
    ["hold", "release", "pause", "resume", "approve", "skip", "prepare", "retry", "wish", "restored"];

impl World {
    pub(crate) fn new() -> Self {
        let input = PlanningInput {
            now: Timestamp(0),
            me: VmName::new("nobody"),
            members: Vec::new(),
            learners: BTreeSet::new(),
            versions: BTreeMap::new(),
            peers: BTreeMap::new(),
            quorum: true,
            leading_since: Timestamp(0),
            leader: None,
            isolated: None,
            policy: Policy::default(),
            timing: Timing::default(),
        };
        Self {
            state: State::default(),
            input,
            workloads: BTreeMap::new(),
            groups: BTreeMap::new(),
            planned: Vec::new(),
            journals: BTreeMap::new(),
        }
    }

    pub(crate) fn obey(&mut self, line: &str) -> Result<String, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "cluster" => self.cluster(rest),
            "workload" => self.workload(rest),
            "rename" => self.rename(rest),
            "group" => self.group(rest),
            "policy" => self.policy(rest),
            "rule" => self.rule(rest),
            "report" => self.report(rest, 0),
            "overtaken" => self.report(rest, 1),
            "repeat" => self.repeat(rest),
            "now" => self.move_to(Timestamp(0).plus(parse::span(rest)?)),
            "wait" => self.move_to(self.input.now.plus(parse::span(rest)?)),
            "lead" => Ok(self.lead(rest)),
            "leave" => Ok(self.leave(rest)),
            "join" => Ok(self.join(rest)),
            "quorum" | "no_quorum" => Ok(self.set_quorum(word == "quorum")),
            "unreachable" | "reachable" => Ok(self.contact(rest, |contact, now| {
                (contact.reachable, contact.since) = (word == "reachable", now);
            })),
            "stall" | "healthy" => Ok(self.contact(rest, |contact, now| {
                let channel = if word == "healthy" { ImdsHealth::Healthy } else { ImdsHealth::Stalled };
                (contact.imds, contact.imds_since) = (channel, now);
            })),
            "acknowledges" => Ok(self.contact(rest, |contact, _| contact.can_acknowledge = true)),
            "seen" | "unseen" => Ok(self.contact(rest, |contact, now| {
                let age = if word == "seen" { Duration::ZERO } else { now.since(Timestamp(-1_000)) };
                contact.document_age = Some(age);
            })),
            "plan" => Ok(self.plan()),
            "propose" => Ok(self.propose()),
            "step" => Ok(self.step()),
            "run" => self.run(),
            "errands" => self.errands(rest),
            "explain" => Ok(self.blockers(self.event(rest)?)),
            "missing" => Ok(show::missing(&self.state, self.event(rest)?)),
            "show" => Ok(show::event(self.event(rest)?)),
            "events" => Ok(self.events()),
            "members" => Ok(show::members(&self.state)),
            "settle" => self.settle(rest),
            "posted" => self.posted(rest),
            "term" => self.term(rest),
            "heard" => self.heard(rest),
            "alone" => self.alone(rest),
            "journal" => self.journal(rest),
            "ended" => self.ended(rest),
            "account" => self.account(rest),
            "lead_without" => self.lead_without(rest),
            _ if REQUESTS.contains(&word) => self.ask(word, rest),
            "knows" => self.knows(rest),
            "unaware" => self.unaware(rest),
            "wishes" => Ok(self.wishes()),
            "suspects" => Ok(self.suspects()),
            "enlist" => self.enlist(rest),
            "delist" => self.delist(rest),
            "note" => self.note(rest),
            "extend" => self.extend(rest),
            "observed" | "measures" => self.evidence(word, rest),
            "circles" => Ok(self.circles()),
            "overrun" => self.overrun(rest),
            "roster" => self.roster(rest),
            "avoid" => self.avoid(rest),
            "prefer" => self.prefer(rest),
            _ => self.raw(word, rest),
        }
    }

    fn cluster(&mut self, names: &str) -> Result<String, String> {
        self.input.members.clear();
        self.join(names);
        self.input.me = self.input.members.first().ok_or("a cluster has members")?.clone();
        for name in self.input.members.clone() {
            self.register(&name);
        }
        Ok(String::new())
    }

    fn join(&mut self, names: &str) -> String {
        let now = self.input.now;
        for name in names.split_whitespace().map(VmName::new) {
            let contact = PeerHealth {
                reachable: true,
                since: now,
                imds: ImdsHealth::Healthy,
                imds_since: now,
                document_age: Some(Duration::ZERO),
                answers_in: Duration::ZERO,
                operator_seq: 0,
                can_acknowledge: false,
            };
            self.input.peers.insert(name.clone(), contact);
            self.input.members.push(name);
        }
        String::new()
    }

    pub(crate) fn named(&self, word: &str) -> Vec<VmName> {
        if word == "*" { self.input.members.clone() } else { vec![VmName::new(word)] }
    }

    fn workload(&mut self, rest: &str) -> Result<String, String> {
        let (vm, text) = rest.split_once(' ').ok_or("workload VM NAME …")?;
        let workload = parse::workload(text)?;
        for vm in self.named(vm) {
            let all = self.workloads.entry(vm.clone()).or_default();
            all.retain(|known| known.name != workload.name);
            all.push(workload.clone());
            self.register(&vm);
        }
        Ok(String::new())
    }

    fn rename(&mut self, rest: &str) -> Result<String, String> {
        let (vm, rest) = rest.split_once(' ').ok_or("rename VM OLD [NEW …]")?;
        let (old, new) = rest.split_once(' ').unwrap_or((rest, ""));
        let vm = VmName::new(vm);
        let all = self.workloads.entry(vm.clone()).or_default();
        all.retain(|known| known.name.0 != old);
        if !new.is_empty() {
            all.push(parse::workload(new)?);
        }
        Ok(self.register(&vm))
    }

    fn group(&mut self, rest: &str) -> Result<String, String> {
        let options = parse::options(rest.split_whitespace());
        let [vm, name] = options.words[..] else { return Err("group VM|* NAME max=N".into()) };
        let max = options.values.get("max").and_then(|max| max.parse().ok()).ok_or("max is a number")?;
        for vm in self.named(vm) {
            let group = Group { name: GroupName(name.into()), max_unavailable: max };
            self.groups.entry(vm.clone()).or_default().push(group);
            self.register(&vm);
        }
        Ok(String::new())
    }

    pub(crate) fn register(&mut self, vm: &VmName) -> String {
        let workloads = self.workloads.get(vm).cloned().unwrap_or_default();
        let groups = self.groups.get(vm).cloned().unwrap_or_default();
        self.commit(vm, Command::RegisterWorkloads(RegisterWorkloads { workloads, groups }))
    }

    fn policy(&mut self, rest: &str) -> Result<String, String> {
        let options = parse::options(rest.split_whitespace());
        let policy = &mut self.input.policy;
        for (key, value) in options.values {
            match key {
                "user_budget" => policy.user_budget = parse::span(value)?,
                "brief_freeze" => policy.brief_freeze = parse::span(value)?,
                "prepare_ahead" => policy.prepare_ahead = parse::span(value)?,
                "give_back_after" => policy.give_back_after = parse::span(value)?,
                "last_call" => policy.last_call = parse::span(value)?,
                "foreign" => {
                    policy.foreign = if value == "observe" { Foreign::Observe } else { Foreign::ApproveUser };
                }
                _ => return Err(format!("'{key}' is no policy")),
            }
        }
        Ok(String::new())
    }

    fn rule(&mut self, rest: &str) -> Result<String, String> {
        let options = parse::options(rest.split_whitespace());
        let action = options.values.get("action").and_then(|word| Action::parse(word)).ok_or("a rule acts")?;
        let phases: Vec<Phase> = options.list("phases").filter_map(Phase::parse).collect();
        self.input.policy.rules.push(Rule {
            name: options.words.join(" "),
            event_types: options.list("type").map(EventType::parse).collect(),
            sources: options.list("source").map(Source::parse).collect(),
            resources: Vec::new(),
            duration: None,
            notice: None,
            action,
            phases: options.values.contains_key("phases").then_some(phases),
            budget: options.span("budget")?,
            prepare_ahead: options.span("prepare_ahead")?,
            window: options.values.get("window").map(|text| parse::window(text)).transpose()?,
        });
        Ok(String::new())
    }

    /// Commits a report which was made `ago` reports ago.
    fn report(&mut self, rest: &str, ago: u64) -> Result<String, String> {
        let (vm, text) = rest.split_once(':').ok_or("report VM: …")?;
        let document = parse::document(text, self.input.now)?;
        let mut answer = String::new();
        for vm in self.named(vm) {
            let after = self.state.replicas.get(&vm).map_or(0, |replica| replica.reports).saturating_sub(ago);
            answer += &self.commit(&vm, Command::ReportDocument(ReportDocument { after, document: document.clone() }));
        }
        Ok(answer)
    }

    /// The latest logged report of this replica arrives once more.
    fn repeat(&mut self, vm: &str) -> Result<String, String> {
        let vm = VmName::new(vm);
        let replica = self.state.replicas.get(&vm).ok_or("no such replica")?;
        let document = replica.document.clone().ok_or("it has not reported")?;
        let after = replica.reports - 1;
        Ok(self.commit(&vm, Command::ReportDocument(ReportDocument { after, document })))
    }

    fn move_to(&mut self, now: Timestamp) -> Result<String, String> {
        if now < self.input.now {
            return Err("time does not go back".into());
        }
        self.input.now = now;
        Ok(String::new())
    }

    fn lead(&mut self, vm: &str) -> String {
        self.input.me = VmName::new(vm);
        String::new()
    }

    /// Removes these replicas from the members.
    fn leave(&mut self, names: &str) -> String {
        let left: Vec<VmName> = names.split_whitespace().map(VmName::new).collect();
        self.input.members.retain(|name| !left.contains(name));
        String::new()
    }

    fn set_quorum(&mut self, quorum: bool) -> String {
        self.input.quorum = quorum;
        String::new()
    }

    fn contact(&mut self, names: &str, change: impl Fn(&mut PeerHealth, Timestamp)) -> String {
        for name in names.split_whitespace().map(VmName::new) {
            if let Some(contact) = self.input.peers.get_mut(&name) {
                change(contact, self.input.now);
            }
        }
        String::new()
    }

    fn plan(&mut self) -> String {
        self.planned = plan(&self.state, &self.input);
        let lines: Vec<_> = self.planned.iter().map(show::command).collect();
        if lines.is_empty() { "nothing is due\n".into() } else { lines.join("\n") + "\n" }
    }

    fn propose(&mut self) -> String {
        let leader = self.input.me.clone();
        let answers = self.planned.clone().into_iter().map(|command| {
            let shown = show::command(&command);
            format!("{shown}: {}", self.commit(&leader, command))
        });
        let answers: String = answers.collect();
        if answers.is_empty() { "nothing is due\n".into() } else { answers }
    }

    fn blockers(&self, event: &Event) -> String {
        let blockers = explain(&self.state, event, &self.input);
        let mut told: Vec<String> = blockers.iter().map(show::blocker).collect();
        let is_halted = blockers.iter().any(|it| matches!(it, Blocker::Hold(_) | Blocker::Paused(_)));
        if is_halted && hooks_run_again(&self.state, event, self.input.now) {
            told.push("its hooks run again afterwards".into());
        }
        told.extend(
            approvable_by_hand(&self.state, event, &self.input).map(|vm| format!("approvable by hand for {vm}")),
        );
        format!("{}\n", if told.is_empty() { "nothing to wait for".into() } else { told.join("; also ") })
    }

    fn step(&mut self) -> String {
        self.planned = plan(&self.state, &self.input);
        self.propose()
    }

    fn run(&mut self) -> Result<String, String> {
        let mut answers = String::new();
        for _ in 0..STEPS_AT_MOST {
            self.planned = plan(&self.state, &self.input);
            if self.planned.is_empty() {
                return Ok(if answers.is_empty() { "nothing is due\n".into() } else { answers });
            }
            answers += &self.propose();
        }
        Err(format!("the plan never ends:\n{answers}"))
    }

    fn errands(&self, rest: &str) -> Result<String, String> {
        let options = parse::options(rest.split_whitespace());
        let [vm] = options.words[..] else { return Err("errands VM [forgotten=ATTEMPT]".into()) };
        let forgotten = options.values.get("forgotten").map_or(Ok(0), |up_to| up_to.parse());
        let forgotten = AttemptId(forgotten.map_err(|_| "forgotten is the number of an attempt")?);
        let shown = |errand: &Assignment<'_>| match errand {
            Assignment::Run { attempt, .. } | Assignment::Cancel { attempt, .. }
                if predates_disk(&self.state, attempt, forgotten) =>
            {
                format!("{}, forgotten: it may run since before", show::errand(errand))
            }
            _ => show::errand(errand),
        };
        let errands: Vec<_> = assignments(&self.state, &VmName::new(vm)).iter().map(shown).collect();
        Ok(if errands.is_empty() { "no errands\n".into() } else { errands.join("\n") + "\n" })
    }

    pub(crate) fn event(&self, id: &str) -> Result<&Event, String> {
        self.state.event(&EventId::new(id)).ok_or(format!("no event {id}"))
    }

    fn events(&self) -> String {
        let line = |event: &Event| {
            let ending = event.ending.map_or(String::new(), |ending| format!(", {}", ending.as_str()));
            format!("{}: {}{ending}\n", event.announcement.id, event.stage())
        };
        let lines: String = self.all().map(line).collect();
        if lines.is_empty() { "no events\n".into() } else { lines }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Event> {
        self.state.events()
    }

    /// Appends one entry and returns its verdict, and the changed stages.
    pub(crate) fn commit(&mut self, by: &VmName, command: Command) -> String {
        let before = self.state.clone();
        let entry = Entry { at: self.input.now, by: by.clone(), command };
        let mut answer = match apply(&mut self.state, &entry) {
            ApplyResult::Applied => String::from("ok"),
            ApplyResult::Rejected(why) => format!("ignored, {why}"),
        };
        for event in self.all() {
            let id = &event.announcement.id;
            let was = before.event(id).map(Event::stage);
            let is_latest = self.state.event(id) == Some(event);
            if is_latest && was != Some(event.stage()) {
                let _ = write!(answer, "; {id} is {}", event.stage());
            }
        }
        if let Some(broken) = invariants::violated(&self.state).or(transition::violated(&before, &self.state)) {
            let _ = write!(answer, "; VIOLATED {broken}");
        }
        answer + "\n"
    }
}
