//! The control plane (Azure Resource Manager): the last way to approve an event, when no metadata endpoint of the
//! cluster works.
//!
//! The token and the id of this VM come from the metadata service, so the client gets both while the service works.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::http_client::{BodyLimit, ExchangeError, HttpClient, Method, Options, Url, exchange, parse_external};
use crate::imds::Endpoint;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::id::{EventId, VmName};

/// The version of the request; later versions have the same form.
const API_VERSION: &str = "2023-10-01-preview";
/// The longest wait for the answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Bytes read of an answer; the text of an error is shorter.
const MAX_ANSWER: usize = 1024;
/// The pause after a failed request for a token.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A token is replaced after half of its lifetime, within these limits.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(6);

/// The address of the control plane, and the identity of the VM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlPlaneOptions {
    /// Without a trailing slash: `https://management.azure.com`, or the address in another cloud of Azure.
    pub endpoint: String,
    /// The user-assigned identity; `None`: the only identity of the VM.
    pub client_id: Option<String>,
}

pub struct ControlPlane {
    options: ControlPlaneOptions,
    metadata: Arc<Endpoint>,
    http: HttpClient,
    known: Mutex<Option<Access>>,
}

/// What a request needs.
#[derive(Clone)]
struct Access {
    token: String,
    until: Instant,
    /// The id of this VM's resource.
    resource: String,
}

impl ControlPlane {
    /// # Errors
    /// The reason why no client can be made for the address.
    pub async fn new(options: ControlPlaneOptions, metadata: Arc<Endpoint>) -> Result<Self, String> {
        let url = parse_external(&options.endpoint)?;
        let http = HttpClient::new(&url, &Options::default()).await?;
        Ok(Self { options, metadata, http, known: Mutex::new(None) })
    }

    /// Keeps a valid token, for ever.
    pub async fn keep_token(&self) {
        let mut has_failed = false;
        loop {
            let wait = match self.renew().await {
                Ok(lasts) => {
                    has_failed = false;
                    (lasts / 2).clamp(SHORTEST, LONGEST)
                }
                Err(why) => {
                    if !has_failed {
                        tracing::warn!(why, "no token for the control plane");
                    }
                    has_failed = true;
                    AGAIN_AFTER
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Requests a token, and returns its lifetime.
    ///
    /// # Errors
    /// The reason why this VM cannot use the control plane.
    pub async fn renew(&self) -> Result<Duration, String> {
        let instance = self.metadata.instance().await.map_err(|why| why.to_string())?;
        let resource = instance.resource_id.ok_or("the instance metadata has no resource id of this VM")?;
        let audience = format!("{}/", self.options.endpoint);
        let asked = Instant::now();
        let token = self.metadata.token(&audience, self.options.client_id.as_deref()).await;
        let token = token.map_err(|why| format!("no token of the VM's managed identity: {why}"))?;
        let access = Access { token: token.value, until: asked + token.lasts, resource };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(access);
        Ok(token.lasts)
    }

    /// Whether a token is at hand.
    pub fn is_ready(&self) -> bool {
        self.access().is_some()
    }

    /// Approves an event of a VM, once.
    pub async fn acknowledge(&self, event: &EventId, vm: &VmName) -> PostOutcome {
        let Some(access) = self.access() else {
            return PostOutcome::NotSent("no valid token for the control plane; `allclear doctor` tells why".into());
        };
        let Some(url) = url(&self.options.endpoint, &access.resource, event, vm) else {
            return PostOutcome::NotSent("the name of the event or of its VM cannot be a part of a resource id".into());
        };
        let request = self.http.request(Method::POST, url).bearer_auth(&access.token).body("");
        match exchange(request, ANSWERS_WITHIN, BodyLimit::Start(MAX_ANSWER)).await {
            Ok(reply) => {
                if reply.status != 200 {
                    let said = String::from_utf8_lossy(&reply.body);
                    tracing::warn!(status = reply.status, %said, "the control plane did not accept the approval");
                }
                outcome(reply.status)
            }
            Err(ExchangeError::NotSent(why)) => {
                PostOutcome::NotSent(format!("no connection to the control plane ({why})"))
            }
            Err(ExchangeError::Lost(why)) => PostOutcome::Unknown(format!("no answer of the control plane ({why})")),
        }
    }

    fn access(&self) -> Option<Access> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone().filter(|access| Instant::now() < access.until)
    }
}

/// Status 200 is the only documented answer for an approval; any error status is a refusal.
fn outcome(status: u16) -> PostOutcome {
    match status {
        200 => PostOutcome::Accepted,
        300..=599 => PostOutcome::Refused(status),
        _ => PostOutcome::Unknown(format!("the control plane answered with the undocumented status {status}")),
    }
}

/// The address of an event. The VMs of an availability set are in one resource group; the instances of a scale set
/// belong to the resource of the set.
fn url(endpoint: &str, own: &str, event: &EventId, vm: &VmName) -> Option<Url> {
    let is_plain =
        |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric() || b"_.-".contains(&it));
    let (event, vm) = (event.as_received(), vm.as_str());
    if !is_plain(event) || !is_plain(vm) {
        return None;
    }
    let (folder, _) = own.rsplit_once('/')?;
    let set = folder.strip_suffix("/virtualMachines").filter(|set| set.contains("/virtualMachineScaleSets/"));
    let resource = set.map_or_else(|| format!("{folder}/{vm}"), ToOwned::to_owned);
    let action = format!("providers/Microsoft.Maintenance/scheduledevents/{event}/acknowledge");
    Url::parse(&format!("{endpoint}{resource}/{action}?api-version={API_VERSION}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_address_of_its_vm_or_scale_set() {
        let group = "/subscriptions/0-1/resourceGroups/orders/providers/Microsoft.Compute";
        let told = |own: &str, event: &str, vm: &str| {
            url("https://arm.test", own, &EventId::new(event), &VmName::new(vm)).map(|url| url.to_string())
        };
        let action = "providers/Microsoft.Maintenance/scheduledevents/A1-b/acknowledge?api-version=2023-10-01-preview";
        assert_eq!(
            told(&format!("{group}/virtualMachines/db-0"), "A1-b", "db-1"),
            Some(format!("https://arm.test{group}/virtualMachines/db-1/{action}"))
        );
        assert_eq!(
            told(&format!("{group}/virtualMachineScaleSets/db/virtualMachines/0"), "A1-b", "db_1"),
            Some(format!("https://arm.test{group}/virtualMachineScaleSets/db/{action}"))
        );
        for (event, vm) in [("a/b", "db-1"), ("a", "db/1"), ("a?b", "db-1"), ("", "db-1")] {
            assert_eq!(told(&format!("{group}/virtualMachines/db-0"), event, vm), None, "{event} {vm}");
        }
    }
}
