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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_lose_parts_of_a_millisecond_only() {
        let read_back = |span: Duration| Duration::restore(span.store());
        assert_eq!(read_back(Duration::from_micros(1_999)), Ok(Duration::from_millis(1)));
        assert_eq!(read_back(Duration::MAX), Ok(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn names_are_stored_as_they_were_received_and_ids_in_lower_case() {
        assert_eq!(VmName::new("_WestNO_0").store(), "_WestNO_0");
        assert_eq!(EventId::new("Ab-1").store(), "ab-1");
    }

    #[test]
    fn a_number_too_wide_for_its_field_is_refused() {
        assert_eq!(u16::restore(65_535), Ok(u16::MAX));
        assert_eq!(u16::restore(65_536), Err(DecodeFault::OutOfRange(65_536).into()));
    }
}
