//! The members of a cluster: the voters, the learners, and the known disk of each member. A machine that returns with
//! an empty disk is a new member under the same name.

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ModelMembers {
    pub(crate) voters: Vec<usize>,
    pub(crate) learners: Vec<usize>,
    /// The disk of each machine, as known to the cluster.
    disks: Vec<u32>,
}

impl ModelMembers {
    /// The first `voters` machines vote.
    pub(crate) fn first(machines: usize, voters: usize) -> Self {
        Self { voters: (0..voters).collect(), learners: (voters..machines).collect(), disks: vec![0; machines] }
    }

    /// The members known to an empty disk.
    pub(super) fn nobody(machines: usize) -> Self {
        Self { voters: Vec::new(), learners: Vec::new(), disks: vec![0; machines] }
    }

    pub(super) fn machines(&self) -> usize {
        self.disks.len()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = usize> {
        self.voters.iter().chain(&self.learners).copied()
    }

    pub(super) fn is_known(&self, vm: usize, disk: u32) -> bool {
        self.disks.get(vm) == Some(&disk)
    }

    pub(crate) fn is_voter(&self, vm: usize, disk: u32) -> bool {
        self.voters.contains(&vm) && self.is_known(vm, disk)
    }

    pub(super) fn is_member(&self, vm: usize, disk: u32) -> bool {
        self.all().any(|member| member == vm) && self.is_known(vm, disk)
    }

    pub(super) fn without(&self, gone: usize) -> Self {
        let others = |of: &[usize]| of.iter().copied().filter(|vm| *vm != gone).collect();
        Self { voters: others(&self.voters), learners: others(&self.learners), disks: self.disks.clone() }
    }

    /// Adds a learner, with its current disk.
    pub(super) fn with_learner(&self, vm: usize, disk: u32) -> Self {
        let mut members = self.without(vm);
        members.learners.push(vm);
        members.disks[vm] = disk;
        members
    }

    pub(super) fn with_voter(&self, vm: usize) -> Self {
        let mut members = self.without(vm);
        members.voters.push(vm);
        members.voters.sort_unstable();
        members
    }
}
