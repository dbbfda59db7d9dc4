//! Names, ids and times: texts as they were received, and numbers.

use std::time::Duration;

use super::stored::Stored;
use super::undecodable::{Fault, Undecodable};
use crate::machine::id::{AttemptId, EventId, GroupName, VmName, WorkloadName};
use crate::machine::time::Timestamp;

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

simple!(VmName as String, self => self.as_str().into(), name => Self::new(&name));
simple!(EventId as String, self => self.as_str().into(), id => Self::new(&id));
simple!(WorkloadName as String, self => self.0.clone(), name => Self(name));
simple!(GroupName as String, self => self.0.clone(), name => Self(name));
simple!(AttemptId as u64, self => self.0, id => Self(id));
simple!(Timestamp as i64, self => self.0, unix_ms => Self(unix_ms));
// Parts of a millisecond are cut off, and what no u64 holds is stored as the longest there is.
simple!(Duration as u64, self => u64::try_from(self.as_millis()).unwrap_or(u64::MAX), ms => Self::from_millis(ms));

/// Protobuf has no narrower number than 32 bits.
impl Stored for u16 {
    type Message = u32;

    fn store(&self) -> u32 {
        (*self).into()
    }

    fn restore(number: u32) -> Result<Self, Undecodable> {
        Self::try_from(number).map_err(|_| Fault::OutOfRange(number).into())
    }
}
