//! A replica's disk: writes, their duration, and the data read after a restart.

use std::time::Duration;

use super::{Agreement, ModelDisk};
use crate::node_state::Node;
use crate::scenario::FaultKind;
use crate::world::World;

impl World {
    /// One write and its sync; false if the disk failed, which also ends the process.
    pub(crate) fn write(&self, vm: usize, change: impl FnOnce(&mut ModelDisk)) -> bool {
        self.write_beside(vm, |node| change(&mut node.kept.borrow_mut()))
    }

    /// A write of data outside the Raft state.
    pub(crate) fn write_beside(&self, vm: usize, change: impl FnOnce(&Node)) -> bool {
        let node = &self.nodes[vm];
        if node.body.borrow().is_doomed {
            return false;
        }
        let fails = node.body.borrow_mut().fails.take();
        if fails != Some(false) {
            change(node);
        }
        if fails.is_some() {
            self.doom(vm);
        }
        fails.is_none()
    }

    pub(crate) fn disk_time(&self, vm: usize) -> Duration {
        let slow = self.slowest(|at, kind| match kind {
            FaultKind::DiskSlow { by } if at == vm => Some(*by),
            _ => None,
        });
        slow.unwrap_or(Duration::from_millis(1))
    }

    /// Restores the data from the disk after a restart.
    pub(crate) fn read_back(&self, vm: usize) {
        let node = &self.nodes[vm];
        if makes!(self.mutation, LogNotSynced) {
            let mut kept = node.kept.borrow_mut();
            let len = kept.len().saturating_sub(3);
            kept.truncate(len);
            kept.applied = kept.applied.min(len);
        }
        let applied = node.kept.borrow().applied;
        *node.agreement.borrow_mut() = Agreement { committed: applied, applied, ..Agreement::default() };
    }
}
