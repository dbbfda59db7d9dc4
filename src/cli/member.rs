//! `allclear member list`, `add` and `remove`: who takes part in the cluster. Any replica may be asked; `restore` is
//! for when nobody is left to ask.

use clap::Subcommand;

use super::ask::{Target, answer, print};
use super::restore::Restore;
use super::{Exit, told};
use crate::rpc::client::Asking;
use crate::wire::pb::allclear::operator::v1::{AddMemberRequest, RemoveMemberRequest};

/// Lists, adds and removes the cluster's members, and restores a cluster from its last disk
#[derive(clap::Args)]
pub(super) struct Member {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    List(List),
    Add(Add),
    Remove(Remove),
    Restore(Restore),
}

/// Shows each member: its address, whether it votes, leads and answers, and its node id
#[derive(clap::Args)]
struct List {
    #[command(flatten)]
    target: Target,
}

/// Adds a running replica: it is brought up to date and votes while there is room
#[derive(clap::Args)]
struct Add {
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
}

/// Removes a member, running or not; one whose disk was lost has to be removed before it is added again
#[derive(clap::Args)]
struct Remove {
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
}

impl Member {
    pub(super) fn run(self) -> Exit {
        match self.action {
            Action::List(list) => list.run(),
            Action::Add(add) => add.run(),
            Action::Remove(remove) => remove.run(),
            Action::Restore(restore) => restore.run(),
        }
    }
}

impl List {
    fn run(self) -> Exit {
        answer(async {
            let members = Asking::connect(&self.target.endpoint).await?.members().await?;
            print(&self.target, &members, |members| told::members(&self.target.reader(), members))
        })
    }
}

impl Add {
    fn run(self) -> Exit {
        answer(async {
            let Self { name, address, reason, .. } = self;
            let request = AddMemberRequest { name: name.clone(), address, reason };
            let added = Asking::connect(&self.target.endpoint).await?.add_member(request).await?;
            print(&self.target, &added, |added| {
                if added.voter {
                    format!("{name} is a voter\n")
                } else {
                    format!("{name} is a learner: there are as many voters as there may be\n")
                }
            })
        })
    }
}

impl Remove {
    fn run(self) -> Exit {
        answer(async {
            let request = RemoveMemberRequest { name: self.name.clone(), gone: self.gone, reason: self.reason };
            let removed = Asking::connect(&self.target.endpoint).await?.remove_member(request).await?;
            print(&self.target, &removed, |_| format!("{} is no member any more\n", self.name))
        })
    }
}
