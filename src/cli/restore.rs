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

/// Restores the cluster from the disk of this stopped replica alone, when all other disks are lost permanently
///
/// Without the flag, the command changes nothing: it prints the contents of the disk, the losses and the next steps.
#[derive(clap::Args)]
pub(super) struct Restore {
    #[command(flatten)]
    stopped: Configured,
    /// Restores the cluster. Entries on the other disks alone are lost; never start a replica on another old disk again
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
            say("Nothing was changed. If the other disks are lost permanently, run this command again with \
                 --from-this-disk-alone-and-accept-lost-entries. Otherwise start the other replicas instead.");
            return Ok(Err(Exit::Refused));
        }
        survivor.restore()?;
        let name = &holding.replica;
        say(format_args!("Done: {name} is the only member of the cluster. Start {name} first, and then the others."));
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
    let others = if others.is_empty() { "none".into() } else { others.join(", ") };
    let learners = if learners.is_empty() { "none".into() } else { learners.join(", ") };
    format!(
        "{directory} holds the log of {replica} of cluster {cluster}: entries up to {last} (term {term}). The entries \
         up to {committed} are known to be committed. Voters: {voters}. Learners: {learners}.\n{unreadable}\
         - {replica} becomes the only member of the cluster. All entries on this disk count as committed, also entries \
         that were not. Entries that the other replicas committed without {replica} are lost: treatments of events, \
         approvals, ends of hooks.\n\
         - The cluster may post a lost approval to Azure once more.\n\
         - The other replicas ({others}) return as new replicas: stop each replica, EMPTY the replica's data_dir, and \
         start the replica after {replica}. You do not have to add the replicas.\n\
         - Never start another replica on the old data_dir: {replica} refuses such a replica, but enough such replicas \
         elect a leader of their own, and then two clusters approve events for the same VMs.",
        directory = config.replica.data_dir.display(),
        cluster = config.cluster.name,
        voters = voters.join(", "),
        unreadable = unreadable.as_ref().map_or_else(String::new, |(index, why)| format!(
            "- Log entry {index} cannot be read: {why}. The restore loses this entry and all later entries.\n"
        )),
    )
}
