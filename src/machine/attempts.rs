//! The attempts of one event. Whose they are is asked so often, of so many, that it is looked up and not searched for.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use super::attempt::Attempt;
use super::workload::Member;

/// In the order in which they were committed. Whose an attempt is never changes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Attempts {
    all: Vec<Attempt>,
    /// Places in `all`, by member and then as they stand there.
    by_member: Vec<usize>,
}

impl Attempts {
    pub fn push(&mut self, attempt: Attempt) {
        let behind = self.by_member.partition_point(|place| self.all[*place].member <= attempt.member);
        self.by_member.insert(behind, self.all.len());
        self.all.push(attempt);
    }

    /// Those of one workload, oldest first.
    pub fn of<'a>(&'a self, member: &Member) -> impl DoubleEndedIterator<Item = &'a Attempt> + use<'a> {
        let first = self.by_member.partition_point(|place| self.all[*place].member < *member);
        let theirs = &self.by_member[first..];
        let count = theirs.partition_point(|place| self.all[*place].member == *member);
        theirs[..count].iter().map(|place| &self.all[*place])
    }
}

impl Deref for Attempts {
    type Target = [Attempt];

    fn deref(&self) -> &[Attempt] {
        &self.all
    }
}

impl DerefMut for Attempts {
    fn deref_mut(&mut self) -> &mut [Attempt] {
        &mut self.all
    }
}

impl From<Vec<Attempt>> for Attempts {
    fn from(all: Vec<Attempt>) -> Self {
        let mut attempts = Self::default();
        for attempt in all {
            attempts.push(attempt);
        }
        attempts
    }
}

impl<'a> IntoIterator for &'a Attempts {
    type Item = &'a Attempt;
    type IntoIter = core::slice::Iter<'a, Attempt>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl<'a> IntoIterator for &'a mut Attempts {
    type Item = &'a mut Attempt;
    type IntoIter = core::slice::IterMut<'a, Attempt>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::id::{AttemptId, VmName, WorkloadName};
    use crate::machine::time::Timestamp;
    use crate::machine::workload::{HookId, Intent, Phase};

    fn attempt(id: u64, workload: &str) -> Attempt {
        Attempt {
            id: AttemptId(id),
            member: Member { vm: VmName::new("vm"), workload: WorkloadName(workload.into()) },
            hook: HookId { phase: Phase::Drain, ordinal: 0 },
            intent: Intent::Run,
            on: VmName::new("vm"),
            begun_at: Timestamp(0),
            deadline: Timestamp(0),
            progress: None,
            outcome: None,
            late: None,
        }
    }

    #[test]
    fn those_of_one_workload_are_found_oldest_first() {
        let begun = ["b", "a", "c", "b", "a", "b"];
        let attempts: Attempts =
            (0..).zip(begun).map(|(id, workload)| attempt(id, workload)).collect::<Vec<_>>().into();
        let of = |workload| attempts.of(&attempt(9, workload).member).map(|found| found.id.0).collect::<Vec<_>>();
        assert_eq!(["a", "b", "c", "d"].map(of), [vec![1, 4], vec![0, 3, 5], vec![2], vec![]]);
        assert_eq!(attempts.iter().map(|attempt| attempt.id.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }
}
