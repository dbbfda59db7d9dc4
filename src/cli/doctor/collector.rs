//! Whether the trace collector accepts exports: sends an empty request.

use super::finding::Finding;
use allclear_server::config::Config;
use allclear_server::export::traces::ExportResult;

const CHECK: &str = "tracing";

/// A failure is a warning, for a replica works without a collector.
pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let Some(collector) = &config.tracing else { return Vec::new() };
    let endpoint = &collector.endpoint;
    vec![match collector.greet().await {
        ExportResult::Accepted => Finding::ok(CHECK, format!("the collector at {endpoint} accepts traces")),
        ExportResult::Refused(why) | ExportResult::NotNow(why, _) => {
            let what = format!("no trace can be exported to {endpoint}: {why}");
            Finding::warn(CHECK, what, "correct [tracing], or repair the collector; nothing else depends on it")
        }
    }]
}
