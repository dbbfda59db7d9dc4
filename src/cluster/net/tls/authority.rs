//! A certificate authority for one cluster, and its certificates: ECDSA on P-256, with the names as `names` expects
//! them.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, DnsName};
use webpki::KeyUsage;

use super::chain;
use super::names::{cluster_of, uri_of, uri_of_replica};
use allclear_core::model::time::Timestamp;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A certificate and its key, in PEM.
pub struct Made {
    pub cert: String,
    pub key: String,
    pub expires_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    #[error("{0:?} is not a valid name for a certificate: {1}")]
    Name(String, rcgen::Error),
    #[error("a certificate cannot be valid for {0} days")]
    Days(u32),
    #[error("the certificate is not the certificate of an authority made by `allclear certs init`")]
    NotOurs,
    #[error(
        "the authority has expired; make a new authority, and trust both until every replica has a new certificate"
    )]
    Expired,
    #[error("the key cannot sign: {0}")]
    Key(rcgen::Error),
    #[error("the key does not belong to the authority's certificate")]
    OtherKey,
    #[error("cannot make the certificate: {0}")]
    Failed(#[from] rcgen::Error),
}

/// Signs for one cluster.
pub struct Authority {
    cluster: String,
    cert: CertificateDer<'static>,
    key: KeyPair,
    expires_at: Timestamp,
}

impl Authority {
    /// Creates a new authority.
    pub fn make(cluster: &str, days: u32, now: Timestamp) -> Result<Made, MakeError> {
        let (mut params, expires_at) = (params(cluster), ends(now, days)?);
        params.subject_alt_names = vec![uri(&uri_of(cluster))?];
        valid(&mut params, now, expires_at);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let cert = params.self_signed(&key)?.pem();
        Ok(Made { cert, key: key.serialize_pem(), expires_at })
    }

    /// Reads an existing authority.
    pub fn read(cert: &str, key: &str) -> Result<Self, MakeError> {
        let cert = CertificateDer::from_pem_slice(cert.as_bytes()).map_err(|_| MakeError::NotOurs)?;
        let names = chain::names(&cert).map_err(|_| MakeError::NotOurs)?;
        let cluster = names.uris.iter().find_map(|uri| cluster_of(uri)).ok_or(MakeError::NotOurs)?;
        let expires_at = chain::expires_at(&cert).ok().flatten().ok_or(MakeError::NotOurs)?;
        Ok(Self { cluster, cert, key: KeyPair::from_pem(key).map_err(MakeError::Key)?, expires_at })
    }

    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Issues a certificate for a replica; the certificate never outlives the authority.
    pub fn issue(&self, replica: &str, days: u32, now: Timestamp) -> Result<Made, MakeError> {
        let expires_at = ends(now, days)?.min(self.expires_at);
        if expires_at <= now {
            return Err(MakeError::Expired);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = named(replica);
        params.subject_alt_names = vec![uri(&uri_of_replica(&self.cluster, replica))?];
        if DnsName::try_from(replica).is_ok() {
            let name = replica.try_into().map_err(|error| MakeError::Name(replica.into(), error))?;
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        valid(&mut params, now, expires_at);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let authority = self::params(&self.cluster);
        let cert = params.signed_by(&key, &Issuer::from_params(&authority, &self.key))?;
        let trusted = webpki::anchor_from_trusted_cert(&self.cert).map_err(|_| MakeError::NotOurs)?;
        let judged = chain::verify(cert.der(), &[], &[trusted], KeyUsage::server_auth(), chain::unix_time(now));
        judged.map_err(|_| MakeError::OtherKey)?;
        Ok(Made { cert: cert.pem(), key: key.serialize_pem(), expires_at })
    }
}

/// The parameters of the cluster's authority, always equal: later certificates are recognized by these parameters.
fn params(cluster: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(&format!("allclear authority of {cluster}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    // A common name has at most 64 letters, and is not verified.
    named.push(DnType::CommonName, name.chars().take(64).collect::<String>());
    named
}

fn uri(text: &str) -> Result<SanType, MakeError> {
    Ok(SanType::URI(text.try_into().map_err(|error| MakeError::Name(text.into(), error))?))
}

/// The midnight after `days` days.
fn ends(now: Timestamp, days: u32) -> Result<Timestamp, MakeError> {
    let end = Timestamp(midnight(now).0 + DAY_MS * (i64::from(days) + 1));
    if chain::unix_time(end).as_secs() < chain::END_OF_TIME.as_secs() { Ok(end) } else { Err(MakeError::Days(days)) }
}

/// Sets the validity from the midnight before the day before, for clocks that are behind. A precision of days suffices.
fn valid(params: &mut CertificateParams, now: Timestamp, expires_at: Timestamp) {
    let date = |at| date_time_ymd(1970, 1, 1) + Duration::from_secs(chain::unix_time(at).as_secs());
    (params.not_before, params.not_after) = (date(Timestamp(midnight(now).0 - DAY_MS)), date(expires_at));
}

fn midnight(at: Timestamp) -> Timestamp {
    Timestamp(at.0 - at.0.rem_euclid(DAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01, in the morning.
    const NOW: Timestamp = Timestamp(1_767_254_400_000);

    #[test]
    fn what_is_issued_lasts_as_long_as_is_asked_and_never_longer_than_the_authority() {
        let made = Authority::make("orders eu", 30, NOW).unwrap();
        let authority = Authority::read(&made.cert, &made.key).unwrap();
        assert_eq!(authority.cluster(), "orders eu");
        let midnight = NOW.0 - NOW.0 % DAY_MS;
        assert_eq!(made.expires_at, Timestamp(midnight + 31 * DAY_MS));
        for (days, lasts) in [(0, 1), (10, 11), (30, 31), (400, 31)] {
            let issued = authority.issue("db-0", days, NOW).unwrap();
            assert_eq!(issued.expires_at, Timestamp(midnight + lasts * DAY_MS), "{days}");
            let der = CertificateDer::from_pem_slice(issued.cert.as_bytes()).unwrap();
            assert_eq!(chain::expires_at(&der), Ok(Some(issued.expires_at)));
        }
        let later = Timestamp(made.expires_at.0 + 1);
        assert!(matches!(authority.issue("db-0", 1, later), Err(MakeError::Expired)));
        assert!(matches!(authority.issue("db-0", u32::MAX, NOW), Err(MakeError::Days(_))));
    }

    #[test]
    fn an_authority_of_somebody_else_and_keys_that_are_none_are_refused() {
        let made = Authority::make("orders", 30, NOW).unwrap();
        let issued = Authority::read(&made.cert, &made.key).unwrap().issue("db-0", 1, NOW).unwrap();
        assert!(matches!(Authority::read(&issued.cert, &issued.key), Err(MakeError::NotOurs)));
        assert!(matches!(Authority::read("", &made.key), Err(MakeError::NotOurs)));
        assert!(matches!(Authority::read(&made.cert, "no key"), Err(MakeError::Key(_))));
        let mixed = Authority::read(&made.cert, &issued.key).unwrap();
        assert!(matches!(mixed.issue("db-1", 1, NOW), Err(MakeError::OtherKey)));
    }

    #[test]
    fn a_replica_with_any_name_gets_a_certificate() {
        let made = Authority::make("größe", 30, NOW).unwrap();
        let authority = Authority::read(&made.cert, &made.key).unwrap();
        for replica in ["db-0", "vmss_0", "db 0", "dé", &"x".repeat(200)] {
            let issued = authority.issue(replica, 1, NOW).unwrap();
            let der = CertificateDer::from_pem_slice(issued.cert.as_bytes()).unwrap();
            let names = chain::names(&der).unwrap();
            assert_eq!(names.uris, [uri_of_replica("größe", replica)]);
        }
    }
}
