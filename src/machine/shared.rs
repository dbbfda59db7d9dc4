//! What copies of the state share until one of them changes it: the state is shown anew after each batch of entries of
//! the log, and most of it is what it was before.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// Behaves like its content; to change it copies the content first, if anybody else has it.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shared<T>(Arc<T>);

impl<T: Clone> Shared<T> {
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(content: T) -> Self {
        Self(Arc::new(content))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'a, T> IntoIterator for &'a Shared<Vec<T>> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_changed_leaves_the_other_as_it_was() {
        let one = Shared::from(alloc::vec![1, 2]);
        let mut other = one.clone();
        other.push(3);
        assert_eq!((one.as_slice(), other.as_slice()), ([1, 2].as_slice(), [1, 2, 3].as_slice()));
    }
}
