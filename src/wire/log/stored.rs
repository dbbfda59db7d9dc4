//! The pattern of this room: a type of the machine, the message it is stored as, and the way back.
//! Storing cannot fail; restoring refuses what it does not understand, and every field on the way adds its name.

use std::collections::BTreeSet;

use super::undecodable::{Fault, Undecodable};

pub(super) trait Stored: Sized {
    type Message;

    fn store(&self) -> Self::Message;
    fn restore(message: Self::Message) -> Result<Self, Undecodable>;
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

impl<T: Stored + Ord> Stored for BTreeSet<T> {
    type Message = Vec<T::Message>;

    fn store(&self) -> Self::Message {
        self.iter().map(T::store).collect()
    }

    fn restore(messages: Self::Message) -> Result<Self, Undecodable> {
        let count = messages.len();
        let set: Self = messages.into_iter().map(T::restore).collect::<Result<_, _>>()?;
        if set.len() == count { Ok(set) } else { Err(Fault::Twice.into()) }
    }
}

/// A message inside another one that has to be there.
pub(super) fn required<T: Stored>(message: Option<T::Message>) -> Result<T, Undecodable> {
    T::restore(message.ok_or(Fault::Missing)?)
}

pub(super) fn named<T>(restored: Result<T, Undecodable>, place: &str) -> Result<T, Undecodable> {
    restored.map_err(|undecodable| undecodable.within(place))
}

/// `take!(message.field)` restores a field and names it in a refusal; `take!(required message.field)` insists on it.
/// With `variant` before it, the message is one variant of several, and is named too.
macro_rules! take {
    (variant $message:ident . $field:ident) => {
        named(Stored::restore($message.$field), concat!(stringify!($message), ".", stringify!($field)))?
    };
    (required variant $message:ident . $field:ident) => {
        named(required($message.$field), concat!(stringify!($message), ".", stringify!($field)))?
    };
    (required $message:ident . $field:ident) => {
        named(required($message.$field), stringify!($field))?
    };
    ($message:ident . $field:ident) => {
        named(Stored::restore($message.$field), stringify!($field))?
    };
}

/// Stores an enum of the machine as the number that the enum of the same variants in the proto gives it.
macro_rules! numbered {
    ($type:ident as $message:ident { $($variant:ident),+ $(,)? }) => {
        impl Stored for $type {
            type Message = i32;

            fn store(&self) -> i32 {
                match self {
                    $(Self::$variant => pb::$message::$variant.into(),)+
                }
            }

            fn restore(number: i32) -> Result<Self, Undecodable> {
                match pb::$message::try_from(number) {
                    $(Ok(pb::$message::$variant) => Ok(Self::$variant),)+
                    Ok(pb::$message::Unspecified) => Err(Fault::Unspecified.into()),
                    Err(_) => Err(Fault::UnknownNumber(number).into()),
                }
            }
        }
    };
}

pub(super) use {numbered, take};
