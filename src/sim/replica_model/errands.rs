//! Sees to this replica's share of the committed state, as `replica::assignments`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use super::ModelContext;
use super::hooks;
use super::observer;
use super::post::{self, ModelClaim};
use crate::tasks::SignalChanges;
use allclear_core::assignments::{Assignment, assignments, predates_disk};
use allclear_core::model::id::AttemptId;
use allclear_core::model::state::State;

const TICK: Duration = Duration::from_millis(250);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn run(here: ModelContext) {
    let world = here.world.clone();
    let (tasks, signals) = (&world.tasks, &here.process.signals);
    while here.confirm().await.is_err() {
        here.sleep(ASK_AGAIN_AFTER).await;
    }
    // What is older may have been acted on by an earlier life of this replica.
    let caught_up = AttemptId(here.state().attempts);
    here.process.is_known.set(Some(here.state().replicas.contains_key(here.name())));
    let inherited = if makes!(world.mistake, NothingInherited) { AttemptId(0) } else { caught_up };
    let mut is_new = world.nodes[here.me].is_new.get();
    let is_noticed = is_new && !makes!(world.mistake, NewDiskUnnoticed);
    let forgotten = if is_noticed { caught_up } else { AttemptId(0) };
    tasks.spawn(here.me, observer::report(here.clone()));
    let posts_begun: Rc<RefCell<BTreeSet<AttemptId>>> = Rc::default();
    loop {
        let news = SignalChanges::of([&signals.changed, &signals.programs]);
        let state = here.state();
        let errands = assignments(&state, here.name());
        let is_busy = !errands.is_empty();
        let mut is_in_doubt = false;
        for errand in errands {
            match errand {
                Assignment::Run { event, attempt, .. } | Assignment::Cancel { event, attempt }
                    if predates_disk(&state, attempt, forgotten) && !hooks::knows(&here, event, attempt) =>
                {
                    // It may run, and the leader settles it when it must have ended.
                    is_in_doubt = true;
                }
                Assignment::Run { event, attempt, again_if_lost } => {
                    hooks::see_to(&here, event, attempt, again_if_lost, attempt.id <= inherited);
                }
                Assignment::Cancel { event, attempt } => hooks::stop(&here, event, attempt),
                Assignment::Post { event, claim } => {
                    if posts_begun.borrow_mut().insert(claim.attempt) {
                        let claimed = ModelClaim {
                            event: event.announcement.id.clone(),
                            claim: claim.attempt,
                            seen_at: here.steady(),
                            lease: claim.until.since(claim.at),
                            is_inherited: claim.attempt <= inherited,
                        };
                        tasks.spawn(here.me, post::post(here.clone(), claimed));
                    }
                }
            }
        }
        if is_new && !is_in_doubt {
            world.nodes[here.me].is_new.set(false);
            is_new = false;
        }
        posts_begun.borrow_mut().retain(|claim| is_open(&state, *claim));
        let is_busy = hooks::clear_away(&here, &state) || is_busy;
        here.wait(news, is_busy.then_some(TICK)).await;
    }
}

fn is_open(state: &State, claim: AttemptId) -> bool {
    state.open_events().any(|event| event.open_claim().is_some_and(|open| open.attempt == claim))
}
