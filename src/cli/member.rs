//! `allclear member list`, `add` and `remove`: the members of the cluster; `leader transfer`: the leader. Any replica
//! accepts these commands; `restore` is for a cluster without a running replica.

use clap::Subcommand;

use super::asker::Asker;
use super::query::Target;
use super::restore::Restore;
use super::{Exit, output};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Lists, adds and removes the cluster's members, and restores a cluster from the last disk
#[derive(Subcommand)]
pub(super) enum MemberSubcommand {
    /// Lists each member with the address, the vote, the leadership, the node id and the reachability
    List(Target),
    /// Adds a running replica, brings it up to date, and gives it a vote if a vote is free
    Add {
        /// The replica's name
        #[arg(value_name = "NAME")]
        name: String,
        /// The address of the replica's cluster.listen, as the other replicas reach this address: host:port
        #[arg(value_name = "ADDRESS")]
        address: String,
        /// Your reason, kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        asker: Asker,
        #[command(flatten)]
        target: Target,
    },
    /// Removes a member, running or stopped
    ///
    /// After the loss of a disk, remove the member before you add the replica again.
    Remove {
        /// The replica's name
        #[arg(value_name = "NAME")]
        name: String,
        /// Confirms that the machine is gone permanently: the cluster no longer waits for its isolated approvals
        #[arg(long)]
        gone: bool,
        /// Your reason, kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        asker: Asker,
        #[command(flatten)]
        target: Target,
    },
    Restore(Restore),
}

/// Moves leadership to another voter
#[derive(Subcommand)]
pub(super) enum Leader {
    /// Transfers leadership to a voter, and waits until this voter leads
    Transfer {
        /// The next leader; without a name, any voter that is up to date
        #[arg(value_name = "REPLICA")]
        replica: Option<String>,
        /// Your reason, kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        asker: Asker,
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
            Self::Add { name, address, reason, asker, target } => {
                let request = shown::AddMemberRequest { name: name.clone(), address, reason };
                target.change(
                    &asker,
                    async |client| client.add_member(request).await,
                    |added| {
                        if added.voter {
                            format!("{name} is a voter\n")
                        } else {
                            format!("{name} is a learner: the cluster has the maximum number of voters\n")
                        }
                    },
                )
            }
            Self::Remove { name, gone, reason, asker, target } => {
                let request = shown::RemoveMemberRequest { name: name.clone(), gone, reason };
                let told = |_: &_| format!("{name} is no member any more\n");
                target.change(&asker, async |client| client.remove_member(request).await, told)
            }
            Self::Restore(restore) => restore.run(),
        }
    }
}

impl Leader {
    pub(super) fn run(self) -> Result<(), Exit> {
        let Self::Transfer { replica: name, reason, asker, target } = self;
        let request = shown::TransferLeaderRequest { name, reason };
        let told = |transferred: &shown::TransferLeaderResponse| format!("{} leads\n", transferred.leader);
        target.change(&asker, async |client| client.transfer_leader(request).await, told)
    }
}
