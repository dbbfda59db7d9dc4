//! Runs the assignments of the committed state by the core's executor.

use std::time::Duration;

use super::ModelContext;
use super::poller;
use crate::tasks::SignalChanges;
use allclear_core::model::id::AttemptId;
use allclear_core::procedure::executor::{Executor, catch_up};

const TICK: Duration = Duration::from_millis(250);

pub(super) async fn run(here: ModelContext) {
    let (tasks, signals, mutation) = (&here.world.tasks, &here.process.signals, here.world.mutation);
    let found = catch_up(&here).await;
    here.process.is_known.set(Some(found.is_known));
    let left_over = if makes!(mutation, NothingInherited) { AttemptId(0) } else { found.attempt };
    let is_disk_new = here.world.nodes[here.me].is_new.get() && !makes!(mutation, NewDiskUnnoticed);
    let mut executor = Executor::new(left_over, is_disk_new);
    tasks.spawn(here.me, poller::report(here.clone()));
    loop {
        let changes = SignalChanges::of([&signals.changed, &signals.programs]);
        let is_busy = executor.run(&here, &here.state());
        here.wait(changes, is_busy.then_some(TICK)).await;
    }
}
