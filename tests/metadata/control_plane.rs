//! Approvals through the control plane: what each answer means, and which words a failure has.

use std::sync::Arc;
use std::time::Duration;

use allclear::control_plane::{ControlPlane, ControlPlaneOptions};
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::id::{EventId, VmName};

use super::server::{Answer, Server};
use super::{endpoint, says};

const GROUP: &str = "/subscriptions/0-1/resourceGroups/orders/providers/Microsoft.Compute/virtualMachines";

/// The metadata service of a VM with a managed identity.
async fn metadata() -> Server {
    Server::start(|request| {
        if request.line.contains("/identity/") {
            return says(200, r#"{"access_token": "of-db-0", "expires_in": "86400"}"#);
        }
        says(200, format!(r#"{{"compute": {{"name": "db-0", "resourceId": "{GROUP}/db-0"}}}}"#))
    })
    .await
}

/// A client of the control plane at this address, with a token.
async fn client(url: String) -> ControlPlane {
    let metadata = metadata().await;
    let options = ControlPlaneOptions { endpoint: url, client_id: None };
    let client = ControlPlane::new(options, Arc::new(endpoint(&metadata))).await.unwrap();
    assert_eq!(client.renew().await, Ok(Duration::from_hours(24)));
    client
}

async fn acknowledge(client: &ControlPlane) -> PostOutcome {
    client.acknowledge(&EventId::new("A1"), &VmName::new("db-1")).await
}

#[tokio::test]
async fn the_request_names_the_event_and_its_vm_and_carries_the_token() {
    let server = Server::saying(says(200, "{}")).await;
    assert_eq!(acknowledge(&client(server.url()).await).await, PostOutcome::Accepted);
    let [request] = &server.requests()[..] else { panic!("{:?}", server.lines()) };
    let action = "providers/Microsoft.Maintenance/scheduledevents/A1/acknowledge?api-version=2023-10-01-preview";
    assert_eq!(request.line, format!("POST {GROUP}/db-1/{action}"));
    assert!(request.has("Authorization: Bearer of-db-0"), "{:?}", request.headers);
}

#[tokio::test]
async fn only_200_is_accepted_and_every_error_status_is_refused() {
    for (status, expected) in [
        (401, PostOutcome::Refused(401)),
        (403, PostOutcome::Refused(403)),
        (404, PostOutcome::Refused(404)),
        (307, PostOutcome::Refused(307)),
        (503, PostOutcome::Refused(503)),
        (202, PostOutcome::Unknown("the control plane answered with the undocumented status 202".into())),
    ] {
        let server = Server::saying(says(status, "{}")).await;
        assert_eq!(acknowledge(&client(server.url()).await).await, expected, "{status}");
        assert_eq!(server.lines().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_failure_is_told_as_one_of_the_control_plane() {
    let broken = Server::saying(Answer::Bytes(Vec::new())).await;
    let outcome = acknowledge(&client(broken.url()).await).await;
    assert!(
        matches!(&outcome, PostOutcome::Unknown(why) if why.starts_with("no answer of the control plane (")),
        "{outcome:?}"
    );
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = acknowledge(&client(format!("http://{address}")).await).await;
    assert!(
        matches!(&outcome, PostOutcome::NotSent(why) if why.starts_with("no connection to the control plane (")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    let server = Server::saying(says(200, "{}")).await;
    let options = ControlPlaneOptions { endpoint: server.url(), client_id: None };
    let client = ControlPlane::new(options, Arc::new(endpoint(&metadata().await))).await.unwrap();
    let outcome = acknowledge(&client).await;
    assert!(matches!(&outcome, PostOutcome::NotSent(why) if why.starts_with("no valid token")), "{outcome:?}");
    assert_eq!(server.lines(), [""; 0]);
}
