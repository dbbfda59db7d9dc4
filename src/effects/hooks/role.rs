//! Asks a workload for its role in its group: a program or an address answers `primary` or `replica`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::command::{HookCommand, HookEnvironment, Question};
use crate::http_client::{BodyLimit, ExchangeError, HttpClient, Method, Options, exchange, parse_external};
use allclear_core::model::workload::Role;

const BODY_LIMIT: usize = 4096;

/// The source of a workload's role.
#[derive(Clone, Debug)]
pub enum RoleSource {
    Command(HookCommand),
    /// Answers a GET with 200.
    Http {
        url: String,
        options: Options,
    },
}

impl RoleSource {
    /// The role, or the reason why the role is unknown. The answer may take as long as `patience`.
    pub async fn ask(
        &self,
        facts: &BTreeMap<&str, String>,
        surroundings: &HookEnvironment,
        patience: Duration,
    ) -> Result<Role, String> {
        let said = match self {
            Self::Command(command) => run(command, facts, surroundings, patience).await?,
            Self::Http { url, options } => get(url, options, patience).await?,
        };
        parse(&said).ok_or_else(|| "the output is neither primary nor replica".to_owned())
    }
}

async fn run(
    command: &HookCommand,
    facts: &BTreeMap<&str, String>,
    surroundings: &HookEnvironment,
    patience: Duration,
) -> Result<String, String> {
    let variables = facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let question = Question { command, variables, input: String::new() };
    let answer = question.ask(surroundings, patience).await?;
    if answer.status.success() { Ok(answer.said) } else { Err(answer.failure()) }
}

/// Errors are logged, so the text omits the address: its query may hold a secret.
async fn get(address: &str, options: &Options, patience: Duration) -> Result<String, String> {
    let url = parse_external(address).map_err(|why| format!("the address {why}"))?;
    let client = HttpClient::new(&url, options).await?;
    let request = client.request(Method::GET, url);
    let reply = exchange(request, patience, BodyLimit::Whole(BODY_LIMIT)).await.map_err(ExchangeError::into_reason)?;
    if reply.status != 200 {
        return Err(format!("the server answered {}", reply.status));
    }
    Ok(String::from_utf8_lossy(&reply.body).into_owned())
}

/// The first word, or the `role` of a JSON object.
fn parse(said: &str) -> Option<Role> {
    let json: Option<Value> = serde_json::from_str(said).ok();
    let word = match &json {
        Some(object) => object.get("role")?.as_str()?,
        None => said.split_whitespace().next()?,
    };
    match word {
        // Patroni's terms: its primary is called master before 4.0, and a standby cluster has a leader of its own.
        "master" | "leader" | "standby_leader" => Some(Role::Primary),
        "sync_standby" | "quorum_standby" => Some(Role::Replica),
        _ => Role::parse(word).filter(|role| *role != Role::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_a_word_or_that_of_an_object() {
        assert_eq!(parse("primary\n"), Some(Role::Primary));
        assert_eq!(parse("  replica of db-1\n"), Some(Role::Replica));
        assert_eq!(parse(r#"{"role": "primary", "lag": 0}"#), Some(Role::Primary));
        for leader in ["master", "primary", "leader", "standby_leader"] {
            assert_eq!(
                parse(&format!(r#"{{"state": "running", "role": "{leader}"}}"#)),
                Some(Role::Primary),
                "{leader}"
            );
        }
        for standby in ["replica", "sync_standby", "quorum_standby"] {
            assert_eq!(parse(&format!(r#"{{"role": "{standby}"}}"#)), Some(Role::Replica), "{standby}");
        }
        for nothing in [
            r#"{"role": "demoted"}"#,
            "",
            "unknown",
            "Primary",
            "primaryish",
            "{}",
            r#"{"role": 1}"#,
            r#""primary""#,
            "{\"role\"",
        ] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }
}
