//! How values stand in the printed configuration, which reads as itself.

use core::net::SocketAddr;
use core::time::Duration;
use std::path::PathBuf;

use toml::Value;

use super::reader::Found;
use super::written;
use crate::http_client::Url;
use crate::machine::document::{Kind, Source};
use crate::machine::notice::Topic;
use crate::machine::policy::{Action, Foreign};
use crate::machine::workload::{OnFailure, Phase, RunsOn};
use crate::metadata::ApiVersion;
use crate::outlet::notices::receiver::Format;
use crate::tls::NamedBy;

pub(super) trait Printed {
    fn printed(&self) -> Value;
}

macro_rules! printed {
    ($($type:ty: |$value:ident| $printed:expr),+ $(,)?) => {
        $(impl Printed for $type {
            fn printed(&self) -> Value {
                let $value = self;
                Value::from($printed)
            }
        })+
    };
}

printed! {
    bool: |value| *value,
    u32: |value| i64::from(*value),
    &str: |value| *value,
    String: |value| value.clone(),
    PathBuf: |value| value.display().to_string(),
    Duration: |value| humantime::format_duration(*value).to_string(),
    SocketAddr: |value| value.to_string(),
    Url: |value| value.to_string(),
    ApiVersion: |value| value.as_word(),
    Kind: |value| value.as_word(),
    Source: |value| value.as_word(),
    Topic: |value| value.as_word(),
    Action: |value| value.as_word(),
    Foreign: |value| value.as_word(),
    OnFailure: |value| value.as_word(),
    Phase: |value| value.as_word(),
    RunsOn: |value| value.as_word(),
    Format: |value| value.as_word(),
    NamedBy: |value| value.as_word(),
    // Whoever reads a value as it was written wants a text.
    written::Value: |value| super::scalar::text(value).unwrap_or_default(),
}

impl<T: Printed> Printed for Vec<T> {
    fn printed(&self) -> Value {
        self.iter().map(Printed::printed).collect::<Vec<_>>().into()
    }
}

impl<T: Printed> Printed for Found<T> {
    fn printed(&self) -> Value {
        self.value.printed()
    }
}
