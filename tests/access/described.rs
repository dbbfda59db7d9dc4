//! Server reflection: each socket describes exactly its own services, in both versions of the protocol; and the status
//! codes of wrong requests.

use std::path::Path;

use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_reflection::pb::{v1, v1alpha};

use super::cluster::Cluster;
use allclear::wire::pb::allclear::operator::v1 as shown;
use allclear::wire::pb::allclear::operator::v1::end::When;
use allclear::wire::pb::allclear::operator::v1::operator_client::OperatorClient;

const ADDED: [&str; 3] =
    ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// Lists the services by one version of the protocol, and asks for the file of each service.
macro_rules! described {
    ($version:ident, $channel:expr) => {{
        use $version::server_reflection_request::MessageRequest;
        use $version::server_reflection_response::MessageResponse;
        let mut client = $version::server_reflection_client::ServerReflectionClient::new($channel);
        let mut ask = async |question| {
            let request = $version::ServerReflectionRequest { host: String::new(), message_request: Some(question) };
            let answers = client.server_reflection_info(tokio_stream::iter([request])).await.unwrap();
            answers.into_inner().next().await.unwrap().unwrap().message_response.unwrap()
        };
        let MessageResponse::ListServicesResponse(list) = ask(MessageRequest::ListServices("*".into())).await else {
            panic!("no list")
        };
        let mut names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
        names.sort();
        for name in &names {
            let answer = ask(MessageRequest::FileContainingSymbol(name.clone())).await;
            assert!(matches!(answer, MessageResponse::FileDescriptorResponse(_)), "{name}: {answer:?}");
        }
        names
    }};
}

async fn at(socket: &Path) -> Channel {
    Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap().connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_socket_describes_the_services_that_it_serves_and_no_other() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let doors = [
        (cluster.replicas[0].socket.clone(), "allclear.operator.v1.Operator"),
        (cluster.door(0), "allclear.workload.v1.Workloads"),
    ];
    for (socket, own) in doors {
        let expected = [[own].as_slice(), &ADDED].concat();
        assert_eq!(described!(v1, at(&socket).await), expected);
        assert_eq!(described!(v1alpha, at(&socket).await), expected);
    }
}

/// Programs tell wrong requests from requests refused in the present state by the status code.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_request_is_an_invalid_argument_and_names_the_field() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let mut client = OperatorClient::new(at(&cluster.replicas[0].socket).await);
    let end = |when: When| Some(shown::End { when: Some(when) });
    let pause = |until, reason: &str| shown::PauseRequest { until, reason: reason.into() };
    let hour = || end(When::AfterMs(3_600_000));
    for (request, field) in [
        (pause(None, "why"), "end"),
        (pause(end(When::At("soon".into())), "why"), "at: \"soon\""),
        (pause(end(When::At("2026-01-01T00:00:00Z".into())), "why"), "in the future"),
        (pause(hour(), " "), "reason"),
    ] {
        let refused = client.pause(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(field), "{refused}");
    }
    let event = "\n".to_owned();
    let reason = "why".to_owned();
    let refused = client.release(shown::ReleaseRequest { event, reason }).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    for address in ["", "y", "y:"] {
        let add = shown::AddMemberRequest { name: "db-1".into(), address: address.into(), reason: None };
        let refused = client.add_member(add).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
    for (kind, source) in [("Rebot", "User"), ("Reboot", "Me")] {
        let (kind, source, resources) = (kind.into(), source.into(), vec!["db-0".into()]);
        let drill = shown::DrillRequest { r#type: kind, source, resources, dry_run: true, ..Default::default() };
        let refused = client.drill(drill).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
    let reason = "why".to_owned();
    let refused = client.resume(shown::ResumeRequest { reason }).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "no pause is in force: {refused}");
}
