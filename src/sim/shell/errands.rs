//! Sees to this replica's share of the committed state, as `replica::errands`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use super::Here;
use super::hooks;
use super::observer;
use super::post::{self, Claimed};
use crate::tasks::News;
use allclear_core::errands::{Errand, errands, is_forgotten};
use allclear_core::model::id::AttemptId;
use allclear_core::model::state::State;

const TICK: Duration = Duration::from_millis(250);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn run(here: Here) {
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
        let news = News::of([&signals.changed, &signals.programs]);
        let state = here.state();
        let errands = errands(&state, here.name());
        let is_busy = !errands.is_empty();
        let mut is_in_doubt = false;
        for errand in errands {
            match errand {
                Errand::Run { event, attempt, .. } | Errand::Cancel { event, attempt }
                    if is_forgotten(&state, attempt, forgotten) && !hooks::knows(&here, event, attempt) =>
                {
                    // It may run, and the leader settles it when it must have ended.
                    is_in_doubt = true;
                }
                Errand::Run { event, attempt, again_if_lost } => {
                    hooks::see_to(&here, event, attempt, again_if_lost, attempt.id <= inherited);
                }
                Errand::Cancel { event, attempt } => hooks::stop(&here, event, attempt),
                Errand::Post { event, claim } => {
                    if posts_begun.borrow_mut().insert(claim.attempt) {
                        let claimed = Claimed {
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
