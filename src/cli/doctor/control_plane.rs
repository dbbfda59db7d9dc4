//! Whether this VM gets a token for the control plane, where the last resort is permitted.

use std::sync::Arc;
use std::time::Duration;

use super::finding::Finding;
use allclear_server::config::Config;
use allclear_server::control_plane::ControlPlane;
use allclear_server::imds::{Endpoint, Timeouts};

const CHECK: &str = "control plane";

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let Some(options) = config.control_plane.clone() else { return Vec::new() };
    let got = async {
        let metadata = &config.metadata;
        let endpoint = Endpoint::new(&metadata.endpoint, metadata.api_version, Timeouts::default());
        let endpoint = endpoint.map_err(|why| why.to_string())?;
        ControlPlane::new(options, Arc::new(endpoint)).await?.renew().await
    };
    vec![match got.await {
        Ok(lasts) => Finding::ok(CHECK, told(lasts)),
        Err(why) => Finding::fail(
            CHECK,
            why,
            "give the VM a managed identity, or set [control_plane] client_id, or remove [control_plane]",
        ),
    }]
}

fn told(lasts: Duration) -> String {
    format!(
        "the VM has a token for {}; not checked: whether its identity has the role Scheduled Events Contributor",
        humantime::format_duration(Duration::from_secs(lasts.as_secs()))
    )
}
