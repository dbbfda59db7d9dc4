//! Whether the requirements of notifications are met. Nothing is sent.

use super::finding::Finding;
use allclear_server::config::Config;

const CHECK: &str = "notify";

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for receiver in &config.receivers {
        let (name, wrong) = (&receiver.name, receiver.try_out().await);
        if wrong.is_empty() {
            findings.push(Finding::ok(CHECK, format!("{name}: address, secrets and certificates can be read")));
        }
        let advice = "repair the fault; until then notifications may not arrive, but nothing else waits for them";
        findings.extend(wrong.iter().map(|wrong| Finding::warn(CHECK, format!("{name}: {wrong}"), advice)));
    }
    findings
}
