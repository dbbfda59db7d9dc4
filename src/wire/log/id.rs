//! Field values: names, ids, words and texts as received, times and numbers.

use std::time::Duration;

use super::stored::Stored;
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::document::{EventType, Source, Status};
use allclear_core::model::id::{AttemptId, EventId, GroupName, VmName, WorkloadName};
use allclear_core::model::time::Timestamp;

macro_rules! simple {
    ($type:ty as $message:ty, $self:ident => $store:expr, $stored:ident => $restore:expr) => {
        impl Stored for $type {
            type Message = $message;

            fn store(&$self) -> $message {
                $store
            }

            fn restore($stored: $message) -> Result<Self, Undecodable> {
                Ok($restore)
            }
        }
    };
}

simple!(bool as bool, self => *self, is_so => is_so);
simple!(u32 as u32, self => *self, number => number);
simple!(u64 as u64, self => *self, number => number);
simple!(String as String, self => self.clone(), text => text);
simple!(VmName as String, self => self.as_str().into(), name => Self::new(&name));
simple!(EventId as String, self => self.as_str().into(), id => Self::new(&id));
simple!(WorkloadName as String, self => self.0.clone(), name => Self(name));
simple!(GroupName as String, self => self.0.clone(), name => Self(name));
simple!(Status as String, self => self.as_str().into(), word => Self::parse(&word));
simple!(EventType as String, self => self.as_str().into(), word => Self::parse(&word));
simple!(Source as String, self => self.as_str().into(), word => Self::parse(&word));
simple!(AttemptId as u64, self => self.0, id => Self(id));
simple!(Timestamp as i64, self => self.0, unix_ms => Self(unix_ms));
// Parts of a millisecond are cut off, and a duration beyond u64 is stored as the longest duration.
simple!(Duration as u64, self => u64::try_from(self.as_millis()).unwrap_or(u64::MAX), ms => Self::from_millis(ms));

/// Protobuf has no narrower number than 32 bits.
impl Stored for u16 {
    type Message = u32;

    fn store(&self) -> u32 {
        (*self).into()
    }

    fn restore(number: u32) -> Result<Self, Undecodable> {
        Self::try_from(number).map_err(|_| DecodeFault::OutOfRange(number).into())
    }
}
