//! The record of a running fake cloud: announced events, and every approval that the cloud received.

use super::approve::word;
use super::serve::Running;
use super::server_state::ServerState;
use allclear_cloud::{ApprovalEffect, PlatformEvent};
use allclear_core::model::id::{EventId, VmName};

/// One approval of one event, posted by a VM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Post {
    pub event: EventId,
    pub vm: VmName,
    /// Time of arrival, RFC 3339.
    pub at: String,
    /// Time of arrival in microseconds since 1970.
    pub at_us: i64,
    /// The platform's result; `None` when the approval never reached the platform.
    pub result: Option<&'static str>,
    /// Whether this approval took effect.
    pub took_effect: bool,
}

impl Running {
    /// The events announced so far, in order of announcement, in their current state.
    pub fn events(&self) -> Vec<PlatformEvent> {
        let mut tenant = self.house.tenant();
        tenant.cloud.advance(self.house.now());
        tenant.cloud.events().to_vec()
    }

    /// The events of the scenario under way, announced or not yet.
    pub fn scenario_events(&self) -> Vec<EventId> {
        self.house.tenant().scenario.clone()
    }

    /// Time of the first poll of any VM after `moment`, RFC 3339.
    pub fn polled_after(&self, moment: &str) -> Option<String> {
        let tenant = self.house.tenant();
        let mut polls = tenant.requests.records().filter(|record| record.method == "GET");
        polls.find(|record| record.at.as_str() > moment).map(|record| record.at.clone())
    }

    /// Every approval received over the VMs' endpoints, oldest first, among the newest thousands of requests.
    pub fn posts(&self) -> Vec<Post> {
        self.house.posts()
    }
}

impl ServerState {
    pub(super) fn posts(&self) -> Vec<Post> {
        let tenant = self.tenant();
        let mut posts = Vec::new();
        for record in tenant.requests.records() {
            let Some(approval) = &record.approval else { continue };
            posts.extend(approval.events.iter().map(|event| Post {
                event: EventId::new(&event.id),
                vm: VmName::new(&record.vm),
                at: record.at.clone(),
                at_us: record.at_us,
                result: event.result,
                took_effect: event.result == Some(word(ApprovalEffect::Accepted)),
            }));
        }
        posts
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;
    use crate::fake_cloud::{CloudScenario, Options, serve};

    const ONE: &str = "about = \"one\"\n[[event]]\nat = 0\ntype = \"Reboot\"\nvm = 0\nnotice = \"1h\"\n\
                       [[event]]\nat = \"1h\"\ntype = \"Reboot\"\nvm = 1\n";

    fn post(endpoint: &str, id: &EventId) {
        let host = endpoint.strip_prefix("http://").unwrap();
        let body = format!("{{\"StartRequests\":[{{\"EventId\":\"{}\"}}]}}", id.as_received());
        let length = body.len();
        let path = "/metadata/scheduledevents?api-version=2020-07-01";
        let headers = format!("Host: {host}\r\nMetadata: true\r\nContent-Length: {length}\r\nConnection: close\r\n");
        let mut connection = TcpStream::connect(host).unwrap();
        connection.write_all(format!("POST {path} HTTP/1.1\r\n{headers}\r\n{body}").as_bytes()).unwrap();
        connection.read_to_string(&mut String::new()).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_approval_is_on_record_and_only_the_first_took_effect() {
        let cloud = serve(Options::new(["a", "b"])).await.unwrap();
        let scenario = CloudScenario::parse("one", ONE).unwrap();
        assert_eq!(scenario.shortest_notice(), Duration::from_mins(15));
        cloud.play(&scenario).unwrap();
        assert_eq!(cloud.scenario_events().len(), 2);
        let events = cloud.events();
        assert_eq!((events.len(), &events[0].plan.resources), (1, &vec![VmName::new("a")]));
        for vm in ["a", "b"] {
            post(&cloud.endpoint(vm).unwrap(), &events[0].id);
        }
        let posts = cloud.posts().into_iter().map(|post| (post.vm, post.result, post.took_effect));
        let expected = [(VmName::new("a"), Some("accepted"), true), (VmName::new("b"), Some("repeated"), false)];
        assert_eq!(posts.collect::<Vec<_>>(), expected);
        cloud.shutdown().await;
    }
}
