//! Watches for the time when this replica is alone and approves what the machine says it may then, as
//! `replica::alone`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::ModelContext;
use crate::endpoint::Why;
use crate::raft_model::Chain;
use allclear_core::isolation::watch::IsolationWatch;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::document::Status;
use allclear_core::model::isolated_approval::{IsolatedApproval, JournalEntry};
use allclear_core::model::isolation::IsolatedView;
use allclear_core::planning_input::PlanningInput;

const TICK: Duration = Duration::from_millis(250);
const FRESH_FOR: Duration = Duration::from_secs(2);
const AGAIN_AFTER: Duration = Duration::from_secs(5);

pub(super) async fn watch(here: ModelContext) {
    let mut watch = IsolationWatch::new(here.steady());
    let mut not_before = watch.last_tick;
    loop {
        here.sleep(TICK).await;
        let alone = look(&mut watch, &here);
        let is_alone = alone.is_some();
        here.process.alone.replace(alone);
        let situation = is_alone.then(|| here.situation());
        let due = situation.filter(|situation| {
            here.steady() >= not_before && here.world.mistake.takeover(&here.state(), situation).is_some()
        });
        if let Some(situation) = due {
            act(&here, situation).await;
            not_before = here.steady().plus(AGAIN_AFTER);
            watch.last_tick = here.steady();
        }
    }
}

/// `None` while a leader is heard.
fn look(watch: &mut IsolationWatch, here: &ModelContext) -> Option<IsolatedView> {
    let now = here.steady();
    if makes!(here.world.mistake, PauseCounts) {
        watch.last_tick = now;
    }
    watch.tick(now, here.believed().as_ref());
    if here.standing().quorum {
        return None;
    }
    let heard = here.world.last_contact(here.me);
    let voters = if here.takes_part() { here.voters() } else { Vec::new() };
    let mut reached = here.process.contacts.borrow().peers(now);
    reached.retain(|name, _| voters.contains(name));
    let node = &here.world.nodes[here.me];
    let tail = Chain::tail(node.kept.borrow().behind(node.agreement.borrow().applied));
    Some(IsolatedView {
        since: here.at(watch.alone_since(heard, &reached)),
        voters,
        reached,
        document: here.believed(),
        seen_since: watch.seen_since(|at| here.at(at)),
        log_time: here.process.time.borrow().of_the_log(here.clocks()),
        tail,
        readiness: BTreeMap::new(),
        journal: node.journal.borrow().clone(),
    })
}

async fn act(here: &ModelContext, mut situation: PlanningInput) {
    let mistake = here.world.mistake;
    let Ok(document) = here.look().await else { return };
    let looked_at = here.steady();
    if let Some(alone) = &mut situation.alone {
        alone.document = here.believed();
    }
    situation.now = here.time();
    let due = mistake.takeover(&here.state(), &situation);
    let announced = due.and_then(|id| document.get(&id).cloned());
    let Some(announced) = announced.filter(|announced| announced.status == Status::Scheduled) else { return };
    if !here.world.fence(here.me) {
        return std::future::pending().await;
    }
    here.sleep(here.world.disk_time(here.me)).await;
    let takeover = IsolatedApproval::begun(&situation, None);
    let entry = JournalEntry { announcement: announced.clone(), takeover: takeover.clone() };
    while here.process.has_turn.get() {
        here.sleep(Duration::from_millis(5)).await;
    }
    let is_fresh = here.steady().since(looked_at) < FRESH_FOR;
    if !is_silent(here) || !is_fresh {
        return;
    }
    if !makes!(mistake, JournalSkipped) {
        write(here, |journal| journal.push(entry)).await;
    }
    here.world.judge_alone(here.me, &announced, &situation);
    let outcome = if here.steady().since(looked_at) < here.world.scenario.timing.claim_lease {
        here.post_approval(&announced.id, Why::Takeover(takeover.at)).await
    } else {
        PostOutcome::NotSent("this replica was paused before it could post".into())
    };
    let end = Some((outcome, here.time()));
    write(here, |journal| {
        for entry in journal.iter_mut().filter(|entry| entry.takeover == takeover) {
            entry.takeover.outcome.clone_from(&end);
        }
    })
    .await;
}

/// On disk when it returns. A process whose disk fails does not come back from here.
async fn write(here: &ModelContext, change: impl FnOnce(&mut Vec<JournalEntry>)) {
    let process = Rc::clone(&here.process);
    process.has_turn.set(true);
    here.sleep(here.world.disk_time(here.me)).await;
    if !here.world.write_beside(here.me, |node| change(&mut node.journal.borrow_mut())) {
        std::future::pending::<()>().await;
    }
    process.has_turn.set(false);
    process.signals.journaled.tell(&here.world.tasks);
}

/// No leader was heard for as long as it takes.
fn is_silent(here: &ModelContext) -> bool {
    let takeover_after = here.world.scenario.timing.takeover_after;
    let heard = here.world.last_contact(here.me);
    !here.standing().quorum && heard.is_none_or(|heard| here.steady().since(heard) >= takeover_after)
}
