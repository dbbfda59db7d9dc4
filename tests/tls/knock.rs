//! A client and a server with given certificates; both accept any certificate of the peer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::pki::Shown;

/// The HTTP/2 client preface, with empty settings: every client sends the preface first, here without a request.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug)]
struct Anything;

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts any certificate, and presents a certificate, or none.
fn takes_anything(shown: Option<Shown>, protocols: &[&[u8]]) -> ClientConfig {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything));
    let mut config = match shown {
        Some(shown) => config.with_client_auth_cert(shown.chain, shown.key).unwrap(),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config
}

fn replica() -> ServerName<'static> {
    ServerName::try_from("replica").unwrap()
}

/// The first TLS bytes of a client.
#[allow(dead_code, reason = "others use it")]
pub(crate) fn first_words(protocols: &[&[u8]]) -> Vec<u8> {
    let mut client = rustls::ClientConnection::new(Arc::new(takes_anything(None, protocols)), replica()).unwrap();
    let mut words = Vec::new();
    client.write_tls(&mut words).unwrap();
    words
}

/// Opens a TLS connection, with one of these protocols inside.
pub(crate) async fn greet(
    address: &str,
    shown: Option<Shown>,
    protocols: &[&[u8]],
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let greeting = TlsConnector::from(Arc::new(takes_anything(shown, protocols))).connect(replica(), stream);
    timeout(LIMIT, greeting).await.expect("an answer, or a refusal")
}

/// Presents a certificate, or none, and speaks HTTP/2 once accepted.
pub(crate) async fn knock(address: &str, shown: Option<Shown>) -> io::Result<TlsStream<TcpStream>> {
    let met = async {
        let mut stream = greet(address, shown, &[b"h2"]).await?;
        stream.write_all(PREFACE).await?;
        stream.read_u8().await?;
        Ok(stream)
    };
    timeout(LIMIT, met).await.expect("an answer, or a refusal")
}

/// True if plain text is answered.
pub(crate) async fn knock_in_plain_text(address: &str) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    let mut first = [0; 9];
    let read = timeout(LIMIT, stream.read_exact(&mut first)).await.expect("an answer, or the end");
    // An answer begins with a SETTINGS frame; the end of TLS is shorter, or another frame.
    read.is_ok() && first[3] == 4
}

/// Answers every client with this certificate, and accepts every client, until dropped.
pub(crate) struct Stranger(tokio::task::JoinHandle<()>);

impl Stranger {
    pub(crate) async fn at(address: &str, shown: Shown) -> Self {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(shown.chain, shown.key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(address.parse::<SocketAddr>().unwrap()).await.unwrap();
        Self(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that refuses the certificate says so and disconnects.
                    if let Ok(mut stream) = acceptor.accept(stream).await {
                        let _ = stream.write_all(&PREFACE[24..]).await;
                        let _ = stream.read_to_end(&mut Vec::new()).await;
                    }
                });
            }
        }))
    }

    /// Sends only the first bytes of HTTP/2, as a server without TLS does.
    pub(crate) async fn in_plain_text(address: &str) -> Self {
        let listener = TcpListener::bind(address.parse::<SocketAddr>().unwrap()).await.unwrap();
        Self(tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let _ = stream.write_all(&PREFACE[24..]).await;
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                });
            }
        }))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.abort();
    }
}
