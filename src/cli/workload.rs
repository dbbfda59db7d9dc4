//! `allclear workload list`, `restored` and `remove`: which members serve and which hooks the other members still need,
//! an operator's declaration that a member is in service, and the removal of a registration. Any replica accepts these
//! commands, and `remove` only the replica of the VM.

use clap::Subcommand;

use super::asker::Asker;
use super::query::Target;
use super::{Exit, output};
use allclear_server::grpc::client::OperatorConnection;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Lists the workloads of every VM, and declares a workload to be in service
#[derive(Subcommand)]
pub(super) enum WorkloadSubcommand {
    /// Lists the workloads of each VM: the state, the time of the last change, the event, and the hooks that are owed
    List(Target),
    /// Declares a workload to be in service if the hooks could not restore the workload; the slot of the group is freed
    Restored {
        /// The workload
        #[arg(value_name = "VM/NAME")]
        workload: String,
        /// Your reason, kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        asker: Asker,
        #[command(flatten)]
        target: Target,
    },
    /// Removes the registration of a session workload that never connects again. An open event then no longer waits for
    /// the hooks of the workload, and may be approved at once. Run the command on the VM of the workload
    Remove {
        /// The workload
        #[arg(value_name = "VM/NAME")]
        workload: String,
        /// Your reason, kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        asker: Asker,
        #[command(flatten)]
        target: Target,
    },
}

impl WorkloadSubcommand {
    pub(super) fn run(self) -> Result<(), Exit> {
        match self {
            Self::List(target) => {
                let members = async |asking: &mut OperatorConnection| Ok(asking.status().await?.members);
                target.look(members, |members| output::workloads(&target.reader(), members))
            }
            Self::Restored { workload, reason, asker, target } => {
                let request = shown::DeclareRestoredRequest { workload: workload.clone(), reason };
                let told = |_: &shown::DeclareRestoredResponse| {
                    format!(
                        "{workload} counts as in service: allclear no longer tries to restore it, and a waiting event of \
                         its group may go on at once, or when its `ready` hook agrees\n"
                    )
                };
                target.change(&asker, async |client| client.declare_restored(request).await, told)
            }
            Self::Remove { workload, reason, asker, target } => {
                let request = shown::RemoveWorkloadRequest { workload: workload.clone(), reason };
                let told = |removed: &shown::RemoveWorkloadResponse| {
                    let unrestored = removed.unrestored_after.as_ref().map_or_else(String::new, |event| {
                        let event = output::sentence(event);
                        format!(
                            "{workload} was prepared for event {event}, and its restore will not run: put the workload \
                             back into service by hand\n"
                        )
                    });
                    format!("{workload} is no longer registered\n{unrestored}")
                };
                target.change(&asker, async |client| client.remove_workload(request).await, told)
            }
        }
    }
}
