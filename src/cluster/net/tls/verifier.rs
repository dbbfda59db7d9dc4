//! The verifier for rustls. A connecting replica accepts only the certificate of its target replica; a listening
//! replica accepts the certificate of any replica of its cluster.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::verify_tls13_signature;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme};
use webpki::KeyUsage;

use super::chain;
use super::handshake_error::HandshakeError;
use super::names::CertificatePolicy;

#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) authorities: Arc<[TrustAnchor<'static>]>,
    pub(super) realm: CertificatePolicy,
    /// The replica to connect to.
    pub(super) dialled: Option<String>,
}

impl Verifier {
    /// Checks the authority first: without a trusted authority the names mean nothing.
    fn judge(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        usage: KeyUsage,
        now: UnixTime,
    ) -> Result<(), HandshakeError> {
        chain::verify(certificate, between, &self.authorities, usage, now)?;
        let names = chain::names(certificate)?;
        match &self.dialled {
            Some(replica) => self.realm.speaks_for(&names, replica),
            None => self.realm.permits(&names),
        }
    }
}

fn signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    verify_tls13_signature(message, certificate, signed, &chain::algorithms())
}

/// No older protocol is configured.
fn too_old() -> Result<HandshakeSignatureValid, Error> {
    Err(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(certificate, between, KeyUsage::server_auth(), now).map_err(HandshakeError::into_tls)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        chain::algorithms().supported_schemes()
    }
}

impl ClientCertVerifier for Verifier {
    /// No hints: a legitimate peer knows its certificate.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(certificate, between, KeyUsage::client_auth(), now).map_err(HandshakeError::into_tls)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        chain::algorithms().supported_schemes()
    }
}
