//! Server reflection: each socket describes exactly the services that it serves, in both versions of the protocol.

use std::path::Path;

use tokio_stream::StreamExt as _;
use tonic::transport::{Channel, Endpoint};
use tonic_reflection::pb::{v1, v1alpha};

use super::cluster::Cluster;

const ADDED: [&str; 3] =
    ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// Lists the services by one version of the protocol, and asks for the file that describes each.
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
