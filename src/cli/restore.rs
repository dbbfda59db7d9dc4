//! `allclear member restore`: a cluster of a single replica from the disk of a stopped replica, when all other
//! replicas are lost.

use std::sync::Arc;

use super::{Configured, Exit, say};
use allclear_core::model::id::VmName;
use allclear_core::model::version::VERSION;
use allclear_server::config::Config;
use allclear_server::consensus::{DiskContents, OpenError, SurvivingReplica};
use allclear_server::replica::clock::ClusterClock;
use allclear_server::replica::state_machine::CoreStateMachine;

/// Makes a cluster of one out of this stopped replica's disk, when the other disks are lost for good
///
/// Without the flag nothing is changed: it shows what the disk holds, what would be lost, and what is to be done.
#[derive(clap::Args)]
pub(super) struct Restore {
    #[command(flatten)]
    stopped: Configured,
    /// Do it: what only the other disks held is lost, and those must never be started again
    #[arg(long)]
    from_this_disk_alone_and_accept_lost_entries: bool,
}

impl Restore {
    pub(super) fn run(&self) -> Result<(), Exit> {
        let config = self.stopped.load()?;
        self.restore(&config).unwrap_or_else(|error| {
            say(&error);
            Err(match error {
                OpenError::InUse { .. } | OpenError::NothingStored { .. } | OpenError::OfAnother { .. } => {
                    Exit::Refused
                }
                _ => Exit::Failed,
            })
        })
    }

    fn restore(&self, config: &Config) -> Result<Result<(), Exit>, OpenError> {
        let directory = &config.replica.data_dir;
        let survivor = SurvivingReplica::open(directory, &config.cluster.name, &folded())?;
        let holding = survivor.holding();
        if let Some(name) = config.replica.name.as_ref().filter(|name| **name != VmName::new(&holding.replica)) {
            let (found, expected) = (holding.replica, name.to_string());
            return Err(OpenError::OfAnother { path: directory.clone(), what: "replica", found, expected });
        }
        say(shown(config, &holding));
        if !self.from_this_disk_alone_and_accept_lost_entries {
            say("Nothing was changed. If the other disks are lost for good, run this again with \
                 --from-this-disk-alone-and-accept-lost-entries. If they are not, start their replicas instead.");
            return Ok(Err(Exit::Refused));
        }
        survivor.restore()?;
        say(format_args!("Done: {} alone is the cluster now. Start it, and then the others.", holding.replica));
        Ok(Ok(()))
    }
}

/// A state machine without I/O; shows which entries this program can read.
fn folded() -> CoreStateMachine {
    CoreStateMachine::new(Arc::new(ClusterClock::default()), VERSION).0
}

fn shown(config: &Config, holding: &DiskContents) -> String {
    let DiskContents { replica, last, term, committed, voters, learners, unreadable } = holding;
    let others: Vec<&str> =
        voters.iter().chain(learners).map(String::as_str).filter(|name| *name != replica.as_str()).collect();
    let others = if others.is_empty() { "nobody".into() } else { others.join(", ") };
    let learners = if learners.is_empty() { "none".into() } else { learners.join(", ") };
    format!(
        "{directory} holds what {replica} of cluster {cluster} knows: entries up to {last} (term {term}), of which those \
         up to {committed} are known to be decided. Voters: {voters}. Learners: {learners}.\n{unreadable}\
         - {replica} alone becomes the cluster. What it holds counts as decided, also what was not; what the others \
         decided without it is lost: answers to events, approvals, ends of hooks.\n\
         - An approval that is lost may be posted once more.\n\
         - The others ({others}) come back as new ones: stop them, EMPTY their data_dir, and start them after this one. \
         Nobody has to add them.\n\
         - Never start them on their old data directories: they are not let in, but enough of them elect a leader \
         among themselves, and then two clusters answer for the same machines.",
        directory = config.replica.data_dir.display(),
        cluster = config.cluster.name,
        voters = voters.join(", "),
        unreadable = unreadable.as_ref().map_or_else(String::new, |(index, why)| format!(
            "- Log entry {index} cannot be read: {why}. This entry and all later ones on this disk are lost with the restore.\n"
        )),
    )
}
