//! `allclear member list`, `add` and `remove`: the members of the cluster; `leader transfer`: the leader. Any replica
//! accepts these commands; `restore` is for a cluster without a running replica.

use clap::Subcommand;

use super::query::Target;
use super::restore::Restore;
use super::{Exit, output};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Lists, adds and removes the cluster's members, and restores a cluster from its last disk
#[derive(Subcommand)]
pub(super) enum MemberSubcommand {
    /// Shows each member: its address, whether it votes, leads and answers, and its node id
    List(Target),
    /// Adds a running replica: it is brought up to date and votes while there is room
    Add {
        /// The replica's name
        #[arg(value_name = "NAME")]
        name: String,
        /// Its cluster.listen as the others reach it, host:port
        #[arg(value_name = "ADDRESS")]
        address: String,
        /// Why, for the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Removes a member, running or not; one whose disk was lost has to be removed before it is added again
    Remove {
        /// The replica's name
        #[arg(value_name = "NAME")]
        name: String,
        /// You vouch that its machine is gone for good: nobody waits for its account of what it did alone any more
        #[arg(long)]
        gone: bool,
        /// Why, for the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    Restore(Restore),
}

/// Moves leadership
#[derive(Subcommand)]
pub(super) enum Leader {
    /// Hands leadership to a voter, and waits until it leads
    Transfer {
        /// The voter that is to lead; left out: any that is up to date
        #[arg(value_name = "REPLICA")]
        replica: Option<String>,
        /// Why, for the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        target: Target,
    },
}

impl MemberSubcommand {
    pub(super) fn run(self) -> Result<(), Exit> {
        match self {
            Self::List(target) => target.look(
                async |asking| {
                    asking.query(async |client| client.list_members(shown::ListMembersRequest {}).await).await
                },
                |members| output::members(&target.reader(), members),
            ),
            Self::Add { name, address, reason, target } => {
                let request = shown::AddMemberRequest { name: name.clone(), address, reason };
                target.change(
                    async |client| client.add_member(request).await,
                    |added| {
                        if added.voter {
                            format!("{name} is a voter\n")
                        } else {
                            format!("{name} is a learner: there are as many voters as there may be\n")
                        }
                    },
                )
            }
            Self::Remove { name, gone, reason, target } => {
                let request = shown::RemoveMemberRequest { name: name.clone(), gone, reason };
                let told = |_: &_| format!("{name} is no member any more\n");
                target.change(async |client| client.remove_member(request).await, told)
            }
            Self::Restore(restore) => restore.run(),
        }
    }
}

impl Leader {
    pub(super) fn run(self) -> Result<(), Exit> {
        let Self::Transfer { replica: name, reason, target } = self;
        let request = shown::TransferLeaderRequest { name, reason };
        let told = |transferred: &shown::TransferLeaderResponse| format!("{} leads\n", transferred.leader);
        target.change(async |client| client.transfer_leader(request).await, told)
    }
}
