//! `allclear workload list` and `restored`: which members serve, which hooks the other members still need, and an
//! operator's declaration that a member is in service. Any replica accepts these commands.

use clap::Subcommand;

use super::query::Target;
use super::{Exit, output};
use allclear_server::grpc::client::OperatorConnection;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Shows the workloads of every VM, and declares one to be in service
#[derive(Subcommand)]
pub(super) enum WorkloadSubcommand {
    /// Shows each workload of each VM: whether it is in service, since when not, by which event, and what is owed
    List(Target),
    /// Declares a workload to be in service that could not be restored by its hooks; its group's slot is free then
    Restored {
        /// The workload
        #[arg(value_name = "VM/NAME")]
        workload: String,
        /// Why: kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: String,
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
            Self::Restored { workload, reason, target } => {
                let request = shown::DeclareRestoredRequest { workload: workload.clone(), reason };
                let told = |_: &shown::DeclareRestoredResponse| format!("{workload} counts as in service\n");
                target.change(async |client| client.declare_restored(request).await, told)
            }
        }
    }
}
