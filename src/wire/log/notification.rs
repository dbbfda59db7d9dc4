//! Deliveries of notifications.

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, pair, store, take};
use super::undecodable::Undecodable;
use allclear_core::model::notification::{Delivery, DeliveryRecord};

message!(Delivery as Delivery { notice: notice, receiver: receiver });

pair!(String, DeliveryRecord as DeliveryRecord { notice: notice, { at: at_unix_ms, receivers: receivers } });
