//! `allclear leader transfer`: leadership to another voter. Any replica may be asked.

use clap::Subcommand;

use super::Exit;
use super::ask::{Target, answer, print};
use crate::rpc::client::Asking;
use crate::wire::pb::allclear::operator::v1::TransferLeaderRequest;

/// Moves leadership
#[derive(clap::Args)]
pub(super) struct Leader {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Transfer(Transfer),
}

/// Hands leadership to a voter, and waits until it leads
#[derive(clap::Args)]
struct Transfer {
    /// The voter that is to lead; left out: any that is up to date
    #[arg(value_name = "REPLICA")]
    replica: Option<String>,
    /// Why, for the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl Leader {
    pub(super) fn run(self) -> Exit {
        match self.action {
            Action::Transfer(transfer) => transfer.run(),
        }
    }
}

impl Transfer {
    fn run(self) -> Exit {
        answer(async {
            let mut asking = Asking::connect(&self.target.endpoint).await?;
            let request = TransferLeaderRequest { name: self.replica, reason: self.reason };
            let transferred = asking.transfer_leader(request).await?;
            print(&self.target, &transferred, |transferred| format!("{} leads\n", transferred.leader))
        })
    }
}
