//! Asking what a workload is within its group: a program or an address that answers `primary` or `replica`.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Client, redirect, retry};
use serde_json::Value;

use super::command::{self, Command, Surroundings};
use crate::machine::workload::Role;

/// What is not answered by then is no answer.
const PATIENCE: Duration = Duration::from_secs(2);
const BODY_LIMIT: usize = 4096;

/// Who tells.
#[derive(Clone, Debug)]
pub enum RoleSource {
    Command(Command),
    /// Answers a GET with 200.
    Http(String),
}

/// Asks for roles.
#[derive(Clone, Debug)]
pub struct RoleAsker {
    surroundings: Surroundings,
    client: Client,
}

impl RoleAsker {
    pub fn new(surroundings: Surroundings) -> Result<Self, String> {
        let builder = Client::builder().no_proxy().redirect(redirect::Policy::none()).retry(retry::never());
        let client = builder.http1_only().timeout(PATIENCE).build().map_err(|error| error.to_string())?;
        Ok(Self { surroundings, client })
    }

    /// What it is, or why nobody can tell.
    pub async fn ask(&self, source: &RoleSource, facts: &BTreeMap<&str, String>) -> Result<Role, String> {
        let said = match source {
            RoleSource::Command(command) => command::ask(command, facts, &self.surroundings, PATIENCE).await?,
            RoleSource::Http(address) => self.get(address).await?,
        };
        parse(&said).ok_or_else(|| "it said neither primary nor replica".to_owned())
    }

    async fn get(&self, address: &str) -> Result<String, String> {
        let mut response = self.client.get(address).send().await.map_err(why)?;
        if response.status().as_u16() != 200 {
            return Err(format!("it answered {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(why)? {
            body.extend_from_slice(&chunk);
            if body.len() > BODY_LIMIT {
                return Err(format!("its answer has more than {BODY_LIMIT} bytes"));
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// The address stays out of it: it goes into logs, and what stands behind a question mark there may be a secret.
fn why(error: reqwest::Error) -> String {
    error.without_url().to_string()
}

/// The first word, or the `role` of a JSON object.
fn parse(said: &str) -> Option<Role> {
    let json: Option<Value> = serde_json::from_str(said).ok();
    let word = match &json {
        Some(object) => object.get("role")?.as_str()?,
        None => said.split_whitespace().next()?,
    };
    Role::from_word(word).filter(|role| *role != Role::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_a_word_or_that_of_an_object() {
        assert_eq!(parse("primary\n"), Some(Role::Primary));
        assert_eq!(parse("  replica of db-1\n"), Some(Role::Replica));
        assert_eq!(parse(r#"{"role": "primary", "lag": 0}"#), Some(Role::Primary));
        for nothing in ["", "unknown", "Primary", "primaryish", "{}", r#"{"role": 1}"#, r#""primary""#, "{\"role\""] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }
}
