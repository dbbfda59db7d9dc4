//! The trait of stored types: the message of a type, and both conversions. Storing cannot fail. Restoring rejects
//! unknown content, and adds the name of each field on the path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::undecodable::{DecodeFault, Undecodable};

pub(super) trait Stored: Sized {
    type Message;

    fn store(&self) -> Self::Message;
    fn restore(message: Self::Message) -> Result<Self, Undecodable>;
}

/// A value stored in one message with the key of the value.
pub(super) trait Paired<K>: Sized {
    type Message;

    fn store_with(&self, key: &K) -> Self::Message;
    fn restore_pair(message: Self::Message) -> Result<(K, Self), Undecodable>;
}

/// The value at `place` of a message.
pub(super) fn restored<T: Stored>(message: T::Message, place: &str) -> Result<T, Undecodable> {
    T::restore(message).map_err(|undecodable| undecodable.within(place))
}

/// A mandatory message inside of another message.
pub(super) fn required<T: Stored>(message: Option<T::Message>, place: &str) -> Result<T, Undecodable> {
    restored(message.ok_or_else(|| Undecodable::from(DecodeFault::Missing).within(place))?, place)
}

impl<T: Stored> Stored for Option<T> {
    type Message = Option<T::Message>;

    fn store(&self) -> Self::Message {
        self.as_ref().map(T::store)
    }

    fn restore(message: Self::Message) -> Result<Self, Undecodable> {
        message.map(T::restore).transpose()
    }
}

impl<T: Stored> Stored for Vec<T> {
    type Message = Vec<T::Message>;

    fn store(&self) -> Self::Message {
        self.iter().map(T::store).collect()
    }

    fn restore(messages: Self::Message) -> Result<Self, Undecodable> {
        messages.into_iter().map(T::restore).collect()
    }
}

impl<T: Stored> Stored for VecDeque<T> {
    type Message = Vec<T::Message>;

    fn store(&self) -> Self::Message {
        self.iter().map(T::store).collect()
    }

    fn restore(messages: Self::Message) -> Result<Self, Undecodable> {
        let mut restored: Self = Vec::restore(messages)?.into();
        // The conversion reuses the allocation of the messages.
        restored.shrink_to_fit();
        Ok(restored)
    }
}

impl<T: Stored + Ord> Stored for BTreeSet<T> {
    type Message = Vec<T::Message>;

    fn store(&self) -> Self::Message {
        self.iter().map(T::store).collect()
    }

    fn restore(messages: Self::Message) -> Result<Self, Undecodable> {
        let count = messages.len();
        let set: Self = messages.into_iter().map(T::restore).collect::<Result<_, _>>()?;
        if set.len() == count { Ok(set) } else { Err(DecodeFault::Twice.into()) }
    }
}

/// Maps of the core are stored as lists in the order of the keys.
impl<K: Ord, V: Paired<K>> Stored for BTreeMap<K, V> {
    type Message = Vec<V::Message>;

    fn store(&self) -> Self::Message {
        self.iter().map(|(key, value)| value.store_with(key)).collect()
    }

    fn restore(messages: Self::Message) -> Result<Self, Undecodable> {
        let count = messages.len();
        let map: Self = messages.into_iter().map(V::restore_pair).collect::<Result<_, _>>()?;
        if map.len() == count { Ok(map) } else { Err(DecodeFault::Twice.into()) }
    }
}

impl<K, V: Paired<K>> Stored for (K, V) {
    type Message = V::Message;

    fn store(&self) -> Self::Message {
        self.1.store_with(&self.0)
    }

    fn restore(message: Self::Message) -> Result<Self, Undecodable> {
        V::restore_pair(message)
    }
}

impl<T: Stored> Stored for Arc<T> {
    type Message = T::Message;

    fn store(&self) -> Self::Message {
        T::store(self)
    }

    fn restore(message: Self::Message) -> Result<Self, Undecodable> {
        T::restore(message).map(Into::into)
    }
}

impl<K, V: Paired<K>> Paired<K> for Arc<V> {
    type Message = V::Message;

    fn store_with(&self, key: &K) -> Self::Message {
        V::store_with(self, key)
    }

    fn restore_pair(message: Self::Message) -> Result<(K, Self), Undecodable> {
        V::restore_pair(message).map(|(key, value)| (key, value.into()))
    }
}
