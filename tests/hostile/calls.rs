//! Any call of the protos, with any bytes.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _};
use tokio::time::timeout;
use tonic::Status;
use tonic::client::Grpc;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;

/// Unchanged bytes.
#[derive(Clone, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = usize;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&bytes);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

impl Decoder for Raw {
    type Item = usize;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<usize>, Status> {
        let length = from.remaining();
        from.advance(length);
        Ok(Some(length))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

/// The methods of the protos, as paths, and the listener that serves each method.
pub(crate) fn methods() -> Vec<(Door, String)> {
    let protos = [
        (Door::Cluster, include_str!("../../proto/allclear/raft/v1/raft.proto")),
        (Door::Cluster, include_str!("../../proto/allclear/cluster/v1/consensus.proto")),
        (Door::Cluster, include_str!("../../proto/allclear/cluster/v1/contact.proto")),
        (Door::Operator, include_str!("../../proto/allclear/operator/v1/operator.proto")),
        (Door::Workload, include_str!("../../proto/allclear/workload/v1/workload.proto")),
    ];
    let mut methods = Vec::new();
    for (door, proto) in protos {
        let (mut package, mut service) = ("", "");
        for line in proto.lines() {
            let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || c == '(' || c == ';').collect();
            match words.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>()[..] {
                ["package", name, ..] => package = name,
                ["service", name, ..] => service = name,
                ["rpc", name, ..] => methods.push((door, format!("/{package}.{service}/{name}"))),
                _ => {}
            }
        }
    }
    assert!(methods.len() > 30, "{methods:?}");
    methods
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Door {
    Cluster,
    Operator,
    Workload,
}

/// The refusal, if the call was refused; `None` if the call was answered, or after a timeout.
pub(crate) async fn call(channel: Channel, path: &str, messages: Vec<Vec<u8>>, within: Duration) -> Option<Status> {
    let mut client = Grpc::new(channel);
    if let Err(error) = client.ready().await {
        return Some(Status::unavailable(error.to_string()));
    }
    let path: PathAndQuery = path.parse().unwrap();
    let called = client.streaming(tonic::Request::new(tokio_stream::iter(messages)), path, Raw);
    let answered = async {
        match called.await {
            Ok(answers) => answers.into_inner().message().await.err(),
            Err(status) => Some(status),
        }
    };
    timeout(within, answered).await.ok().flatten()
}
