//! Verifies a certificate chain against an authority: path, names, and end of validity.

use std::time::Duration;

use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use super::handshake_error::HandshakeError;
use super::names::CertificateNames;
use allclear_core::model::time::Timestamp;

/// The maximum of checked names of a certificate.
const MOST_NAMES: usize = 16;
/// The latest date of certificates.
pub(super) const END_OF_TIME: Duration = Duration::from_secs(253_402_300_799);

pub(super) fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

pub(super) fn algorithms() -> WebPkiSupportedAlgorithms {
    provider().signature_verification_algorithms
}

/// Checks that a certificate leads to one of the authorities, and is valid for `usage` now.
pub(super) fn verify(
    certificate: &CertificateDer<'_>,
    between: &[CertificateDer<'_>],
    authorities: &[TrustAnchor<'_>],
    usage: KeyUsage,
    now: UnixTime,
) -> Result<(), HandshakeError> {
    let certificate = EndEntityCert::try_from(certificate)?;
    certificate.verify_for_usage(algorithms().all, authorities, between, now, usage, None, None)?;
    Ok(())
}

pub(super) fn names(certificate: &CertificateDer<'_>) -> Result<CertificateNames, HandshakeError> {
    let certificate = EndEntityCert::try_from(certificate)?;
    Ok(CertificateNames {
        uris: certificate.valid_uri_names().take(MOST_NAMES).map(str::to_owned).collect(),
        dns: certificate.valid_dns_names().take(MOST_NAMES).map(str::to_owned).collect(),
    })
}

/// The end of a certificate's validity, from a verification at the end of all time: webpki checks the validity before
/// anything else. `None` for a certificate without an end.
pub(super) fn expires_at(certificate: &CertificateDer<'_>) -> Result<Option<Timestamp>, HandshakeError> {
    let end = UnixTime::since_unix_epoch(END_OF_TIME);
    let certificate = EndEntityCert::try_from(certificate)?;
    let judged = certificate.verify_for_usage(algorithms().all, &[], &[], end, KeyUsage::client_auth(), None, None);
    Ok(match judged {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(timestamp(not_after)),
        Err(_) | Ok(_) => None,
    })
}

pub(super) fn unix_time(at: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(at.0).unwrap_or(0)))
}

fn timestamp(at: UnixTime) -> Timestamp {
    Timestamp(i64::try_from(at.as_secs()).unwrap_or(i64::MAX).saturating_mul(1_000))
}
