//! Decides by names alone whether a certificate belongs to a replica of a cluster.
//!
//! A certificate of ours has the URI `allclear://CLUSTER/replica/NAME` among its alternative names, so one authority
//! can serve several clusters. If the configuration allows DNS names, a DNS name of the replica is enough; a
//! certificate with URIs of ours is still checked by its URIs. Subjects and wildcards are ignored.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode};

use super::handshake_error::HandshakeError;
use allclear_core::model::id::VmName;
use allclear_core::string_enum;

const SCHEME: &str = "allclear://";
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The kind of name by which a certificate identifies a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NamedBy {
    /// Names the cluster too.
    #[default]
    Uri,
    /// Omits the cluster: every certificate of the authority must be of this cluster.
    Dns,
}

string_enum!(NamedBy { Uri => "uri", Dns => "dns" });

/// The alternative names of a certificate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CertificateNames {
    pub uris: Vec<String>,
    pub dns: Vec<String>,
}

/// The names for people, escaped so that any content stays on one line.
impl fmt::Display for CertificateNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in self.uris.iter().chain(&self.dns) {
            write!(f, "{separator}{}", name.escape_debug())?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}

/// One cluster, and the kind of its replicas' names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificatePolicy {
    pub cluster: String,
    pub by: NamedBy,
}

impl CertificatePolicy {
    /// Checks that these are the names of some replica of this cluster.
    pub fn permits(&self, names: &CertificateNames) -> Result<(), HandshakeError> {
        match (self.spoken_for(names), self.by) {
            (Some(replicas), _) if replicas.is_empty() => Err(HandshakeError::OtherCluster(names.to_string())),
            (Some(_), _) => Ok(()),
            (None, NamedBy::Dns) if !names.dns.is_empty() => Ok(()),
            (None, NamedBy::Dns | NamedBy::Uri) => Err(HandshakeError::Unnamed(names.to_string())),
        }
    }

    /// Checks that these are the names of this very replica.
    pub fn speaks_for(&self, names: &CertificateNames, replica: &str) -> Result<(), HandshakeError> {
        self.permits(names)?;
        let is_it = match self.spoken_for(names) {
            Some(replicas) => {
                replicas.iter().any(|named| VmName::new(named) == VmName::new(&encoded(replica).to_string()))
            }
            None => names.dns.iter().any(|named| VmName::new(named) == VmName::new(replica)),
        };
        if is_it {
            Ok(())
        } else {
            Err(HandshakeError::WrongName { wanted: replica.to_owned(), named: names.to_string() })
        }
    }

    /// The replicas of this cluster in our URIs, still encoded; `None` without a URI of ours.
    fn spoken_for<'a>(&self, names: &'a CertificateNames) -> Option<Vec<&'a str>> {
        let ours = uri_of(&self.cluster) + "/replica/";
        let mut own = names.uris.iter().filter(|uri| uri.starts_with(SCHEME)).peekable();
        own.peek()?;
        Some(own.filter_map(|uri| uri.strip_prefix(&ours)).filter(|named| !named.is_empty()).collect())
    }
}

/// The URI of an authority of this cluster.
pub(super) fn uri_of(cluster: &str) -> String {
    format!("{SCHEME}{}", encoded(cluster))
}

/// The URI of this replica in its certificate.
pub(super) fn uri_of_replica(cluster: &str, replica: &str) -> String {
    format!("{}/replica/{}", uri_of(cluster), encoded(replica))
}

/// The cluster of an authority's name.
pub(super) fn cluster_of(uri: &str) -> Option<String> {
    let cluster = percent_decode_str(uri.strip_prefix(SCHEME)?).decode_utf8().ok()?;
    (!cluster.is_empty() && uri_of(&cluster) == uri).then(|| cluster.into_owned())
}

/// Encodes a name for a URI, whose parts allow fewer characters (RFC 3986).
fn encoded(name: &str) -> PercentEncode<'_> {
    utf8_percent_encode(name, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn realm(by: NamedBy) -> CertificatePolicy {
        CertificatePolicy { cluster: "orders".into(), by }
    }

    fn names(uris: &[&str], dns: &[&str]) -> CertificateNames {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        CertificateNames { uris: owned(uris), dns: owned(dns) }
    }

    fn word(judged: Result<(), HandshakeError>) -> &'static str {
        judged.map_or_else(|refusal| refusal.as_str(), |()| "taken")
    }

    #[test]
    fn a_certificate_speaks_for_the_replica_that_it_names_and_for_no_other() {
        let of_db_0 = names(&["allclear://orders/replica/db-0"], &["db-1"]);
        for by in [NamedBy::Uri, NamedBy::Dns] {
            assert_eq!(word(realm(by).permits(&of_db_0)), "taken");
            assert_eq!(word(realm(by).speaks_for(&of_db_0, "db-0")), "taken");
            assert_eq!(word(realm(by).speaks_for(&of_db_0, "DB-0")), "taken", "case does not count in a VM's name");
            assert_eq!(word(realm(by).speaks_for(&of_db_0, "_db-0")), "taken", "nor one leading underscore");
            for other in ["db-1", "db-00", "db-", "", "replica/db-0"] {
                assert_eq!(word(realm(by).speaks_for(&of_db_0, other)), "wrong_name", "{other}");
            }
        }
    }

    #[test]
    fn a_certificate_of_another_cluster_is_refused_whatever_else_it_names() {
        for uri in [
            "allclear://payments/replica/db-0",
            "allclear://Orders/replica/db-0",
            "allclear://orders",
            "allclear://orders/replica/",
            "allclear://orders2/replica/db-0",
            "allclear://payments/allclear://orders/replica/db-0",
        ] {
            for by in [NamedBy::Uri, NamedBy::Dns] {
                let other = names(&[uri, "https://orders/replica/db-0"], &["db-0"]);
                assert_eq!(word(realm(by).permits(&other)), "other_cluster", "{uri}");
                assert_eq!(word(realm(by).speaks_for(&other, "db-0")), "other_cluster", "{uri}");
            }
        }
    }

    #[test]
    fn a_dns_name_is_enough_only_where_it_is_asked_for() {
        let plain = names(&["spiffe://orders/db-0"], &["db-0.example", "db-0"]);
        assert_eq!(word(realm(NamedBy::Uri).permits(&plain)), "unnamed");
        assert_eq!(word(realm(NamedBy::Dns).permits(&plain)), "taken");
        assert_eq!(word(realm(NamedBy::Dns).speaks_for(&plain, "db-0")), "taken");
        assert_eq!(word(realm(NamedBy::Dns).speaks_for(&plain, "db-1")), "wrong_name");
        assert_eq!(word(realm(NamedBy::Dns).speaks_for(&names(&[], &["*.example"]), "db-0.example")), "wrong_name");
        for by in [NamedBy::Uri, NamedBy::Dns] {
            assert_eq!(word(realm(by).speaks_for(&CertificateNames::default(), "db-0")), "unnamed");
        }
    }

    #[test]
    fn one_certificate_may_be_of_two_clusters() {
        let both = names(&["allclear://payments/replica/db-7", "allclear://orders/replica/db-0"], &[]);
        assert_eq!(word(realm(NamedBy::Uri).speaks_for(&both, "db-0")), "taken");
        assert_eq!(word(realm(NamedBy::Uri).speaks_for(&both, "db-7")), "wrong_name");
    }

    #[test]
    fn any_name_fits_into_a_uri_and_comes_out_of_it_again() {
        for cluster in ["orders", "orders eu/1", "größe", "%41", "a?b#c"] {
            assert_eq!(cluster_of(&uri_of(cluster)).as_deref(), Some(cluster));
            let realm = CertificatePolicy { cluster: cluster.into(), by: NamedBy::Uri };
            let named = CertificateNames { uris: vec![uri_of_replica(cluster, "_db/0 é")], dns: Vec::new() };
            assert_eq!(word(realm.speaks_for(&named, "db/0 é")), "taken", "{cluster}");
        }
        for wrong in ["allclear://", "https://a", "allclear://a/replica/b", "allclear://%4", "allclear://%zz", "a"] {
            assert_eq!(cluster_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_are_shown_on_one_line() {
        assert_eq!(names(&["allclear://a\n"], &["\u{1b}[31m"]).to_string(), "allclear://a\\n, \\u{1b}[31m");
        assert_eq!(CertificateNames::default().to_string(), "nothing");
    }
}
