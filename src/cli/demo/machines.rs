//! Machines go away and come back as the cloud's events say, where real servers run on them.

use std::collections::BTreeMap;

use crate::cli::stage::members::Said;
use crate::cli::stage::{Stage, VMS};
use crate::machine::document::Kind;
use crate::machine::id::VmName;
use crate::replica::clock;
use crate::simulator::cloud::Event;

#[derive(Default)]
pub(super) struct Machines {
    /// By their place.
    away: BTreeMap<usize, Kind>,
}

impl Machines {
    /// Does what the cloud does by now; tells what is new.
    pub(super) async fn follow(&mut self, stage: &mut Stage) -> anyhow::Result<Vec<Said>> {
        let (events, mut said) = (stage.cloud.events(), Vec::new());
        for (place, vm) in VMS.into_iter().enumerate() {
            let takes_it =
                |event: &&Event| event.is_impacting(clock::now()) && event.plan.resources.contains(&VmName::new(vm));
            let taken = events.iter().find(takes_it).map(|event| event.plan.kind.clone());
            let what = match (taken, self.away.get(&place).cloned()) {
                (Some(kind), None) => {
                    let what = stage.take_away(place, &kind).await?;
                    self.away.insert(place, kind);
                    what
                }
                (None, Some(kind)) => {
                    self.away.remove(&place);
                    stage.give_back(place, &kind).await?
                }
                (Some(_), Some(_)) | (None, None) => continue,
            };
            said.push(Said { at: clock::now(), who: "machine", vm: vm.to_owned(), what: what.to_owned() });
        }
        Ok(said)
    }
}
