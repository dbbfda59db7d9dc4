//! Values in the form of the printed configuration, which can be read again.

use core::net::SocketAddr;
use core::time::Duration;
use std::path::PathBuf;

use toml::Value;

use super::secret::SecretFile;
use super::source;
use crate::export::notices::receiver::Format;
use crate::http_client::Url;
use crate::imds::ApiVersion;
use crate::net::tls::NamedBy;
use allclear_core::model::document::{EventType, Source};
use allclear_core::model::notification::NotificationKind;
use allclear_core::model::treatment::Action;
use allclear_core::model::workload::{OnFailure, Phase, RunsOn};
use allclear_core::policy::Foreign;

pub(super) trait Printed {
    fn printed(&self) -> Value;
}

macro_rules! printed {
    ($($type:ty),+ => |$value:ident| $printed:expr) => {
        $(impl Printed for $type {
            fn printed(&self) -> Value {
                let $value = self;
                Value::from($printed)
            }
        })+
    };
}

printed!(bool => |value| *value);
printed!(u32 => |value| i64::from(*value));
printed!(String => |value| value.clone());
printed!(PathBuf => |value| value.display().to_string());
printed!(Duration => |value| humantime::format_duration(*value).to_string());
printed!(SecretFile => |value| value.written.clone());
// The reader of a raw value expects text.
printed!(source::Value => |value| super::scalar::text(value).unwrap_or_default());
printed!(
    SocketAddr, Url, ApiVersion, EventType, Source, NotificationKind, Action, Foreign, OnFailure, Phase, RunsOn, Format, NamedBy
    => |value| value.to_string()
);

impl<T: Printed> Printed for Vec<T> {
    fn printed(&self) -> Value {
        self.iter().map(Printed::printed).collect::<Vec<_>>().into()
    }
}
