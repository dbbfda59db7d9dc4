//! The format of a command's answer: text for people, or JSON or YAML for programs.

use std::io::Write as _;

use clap::ValueEnum;
use serde::Serialize;

use allclear_server::grpc::client::OperatorClientError;
use allclear_server::http::yaml::harmless_yaml;
use allclear_server::replica::sanitize::harmless_json;

/// The format of the answer.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct AnswerFormat {
    /// Prints JSON, as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// The format of the answer: a table for people, or JSON or YAML for programs
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    output: Format,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Yaml,
}

impl AnswerFormat {
    /// Whether programs read the answer.
    pub(super) fn is_for_programs(self) -> bool {
        self.format() != Format::Table
    }

    fn format(self) -> Format {
        if self.json { Format::Json } else { self.output }
    }

    pub(super) fn print<T: Serialize>(
        self,
        shown: &T,
        told: impl FnOnce(&T) -> String,
    ) -> Result<(), OperatorClientError> {
        let unwritable = |error: serde_json::Error| OperatorClientError::Output(error.to_string());
        write(&match self.format() {
            Format::Table => told(shown),
            Format::Json => harmless_json(&serde_json::to_string(shown).map_err(unwritable)?) + "\n",
            Format::Yaml => harmless_yaml(&serde_json::to_value(shown).map_err(unwritable)?),
        })
    }
}

pub(super) fn write(text: &str) -> Result<(), OperatorClientError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| OperatorClientError::Output(error.to_string()))
}
