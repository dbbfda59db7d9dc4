//! A set of small numbers that costs one byte: replicas or events.

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Set(u8);

impl Set {
    pub(crate) fn first(count: usize) -> Self {
        (0..count).collect()
    }

    pub(crate) fn contains(self, member: usize) -> bool {
        self.0 & (1 << member) != 0
    }

    /// True if it was not in there.
    pub(crate) fn insert(&mut self, member: usize) -> bool {
        let is_new = !self.contains(member);
        self.0 |= 1 << member;
        is_new
    }

    pub(crate) fn remove(&mut self, member: usize) {
        self.0 &= !(1 << member);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |member| self.contains(*member))
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Self {
        members.into_iter().fold(Self::default(), |set, member| Self(set.0 | 1 << member))
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}
