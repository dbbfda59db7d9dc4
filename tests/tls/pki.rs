//! Certificates for tests: good certificates from the program's own `certs`, and every kind of bad certificate.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use allclear::net::tls::NamedBy;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

use super::cluster::Cluster;

/// The cluster name in all tests.
pub(crate) const CLUSTER: &str = "tests";
const VMS: [&str; 3] = ["db-0", "db-1", "db-2"];

/// An authority made by the program, and the files in the replicas' configurations.
pub(crate) struct Pki {
    folder: TempDir,
}

/// A chain and its key, to present to a peer.
pub(crate) struct Shown {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    /// The chain in PEM, as in a file.
    pub(crate) pem: String,
}

pub(crate) fn certs(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_allclear")).arg("certs").args(arguments).env_clear().output().unwrap()
}

impl Pki {
    pub(crate) fn new() -> Self {
        let made = Self { folder: TempDir::with_prefix("ac").unwrap() };
        made.authority("ca");
        for vm in VMS {
            made.issue("ca", vm);
            made.install("ca", vm);
        }
        made
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes an authority of the cluster in a folder of its own.
    pub(crate) fn authority(&self, folder: &str) {
        let output = certs(&["init", "--dir", self.path(folder).to_str().unwrap(), "--cluster", CLUSTER]);
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn issue(&self, authority: &str, replica: &str) {
        let output = certs(&["issue", "--dir", self.path(authority).to_str().unwrap(), "--replica", replica]);
        assert!(output.status.success(), "{output:?}");
    }

    /// Copies the key and certificate issued by an authority, and the authority's certificate, to the replica's folder.
    pub(crate) fn install(&self, authority: &str, replica: &str) {
        std::fs::create_dir_all(self.path(replica)).unwrap();
        for file in ["node.key", "node.pem", "ca.pem"] {
            std::fs::copy(self.path(authority).join(replica).join(file), self.path(replica).join(file)).unwrap();
        }
    }

    /// Issues anew, and replaces the former key and certificate; the trusted authorities stay.
    pub(crate) fn renew(&self, authority: &str, replica: &str) {
        self.issue(authority, replica);
        for file in ["node.key", "node.pem"] {
            self.replace(replica, file, &std::fs::read(self.path(authority).join(replica).join(file)).unwrap());
        }
    }

    pub(crate) fn replace(&self, replica: &str, file: &str, bytes: &[u8]) {
        let beside = self.path(replica).join("beside");
        let mut written =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside).unwrap();
        written.write_all(bytes).unwrap();
        std::fs::rename(beside, self.path(replica).join(file)).unwrap();
    }

    /// Sets the authorities trusted by the replica from now on.
    pub(crate) fn trust(&self, replica: &str, authorities: &[&str]) {
        let read = |folder: &&str| std::fs::read_to_string(self.path(folder).join("ca.pem")).unwrap();
        let together: String = authorities.iter().map(read).collect();
        self.replace(replica, "ca.pem", together.as_bytes());
    }

    /// The `[cluster.tls]` table of a replica's configuration.
    pub(crate) fn table(&self, replica: &str, also: &str) -> String {
        let file = |name: &str| self.path(replica).join(name).display().to_string();
        let (cert, key, ca) = (file("node.pem"), file("node.key"), file("ca.pem"));
        format!("[cluster.tls]\ncert = {cert:?}\nkey = {key:?}\nca = {ca:?}\n{also}\n")
    }

    pub(crate) fn tables(&self, also: &str) -> Vec<String> {
        VMS.iter().map(|vm| self.table(vm, also)).collect()
    }

    /// The certificate issued by the program to a replica.
    pub(crate) fn of(&self, authority: &str, replica: &str) -> Shown {
        self.issue(authority, replica);
        Shown::read(&self.path(authority).join(replica))
    }

    /// The wanted certificate, signed by the cluster's own authority.
    pub(crate) fn signed(&self, wanted: &Wanted) -> Shown {
        let key = std::fs::read_to_string(self.path("ca/ca.key")).unwrap();
        let mut of_ca = CertificateParams::default();
        of_ca.distinguished_name = rcgen::DistinguishedName::new();
        of_ca.distinguished_name.push(rcgen::DnType::CommonName, format!("allclear authority of {CLUSTER}"));
        wanted.signed_by(&of_ca, &KeyPair::from_pem(&key).unwrap())
    }
}

impl Shown {
    fn read(folder: &Path) -> Self {
        let pem = std::fs::read_to_string(folder.join("node.pem")).unwrap();
        let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect();
        Self { chain, key: PrivateKeyDer::from_pem_file(folder.join("node.key")).unwrap(), pem }
    }
}

/// A certificate that is wrong in some way.
pub(crate) struct Wanted {
    pub(crate) uris: Vec<String>,
    pub(crate) dns: Vec<String>,
    /// The first and the last year of validity.
    pub(crate) years: (i32, i32),
    pub(crate) usages: Vec<ExtendedKeyUsagePurpose>,
}

impl Wanted {
    pub(crate) fn naming(uri: &str) -> Self {
        let usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Self { uris: vec![uri.into()], dns: Vec::new(), years: (2020, 2100), usages }
    }

    pub(crate) fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        let uris = self.uris.iter().map(|uri| SanType::URI(uri.as_str().try_into().unwrap()));
        let dns = self.dns.iter().map(|name| SanType::DnsName(name.as_str().try_into().unwrap()));
        params.subject_alt_names = uris.chain(dns).collect();
        params.extended_key_usages.clone_from(&self.usages);
        (params.not_before, params.not_after) = (date_time_ymd(self.years.0, 1, 1), date_time_ymd(self.years.1, 1, 1));
        params
    }

    fn signed_by(&self, authority: &CertificateParams, key_of_authority: &KeyPair) -> Shown {
        let key = KeyPair::generate().unwrap();
        let certificate = self.params().signed_by(&key, &Issuer::from_params(authority, key_of_authority)).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Shown { chain: vec![certificate.der().clone()], key, pem: certificate.pem() }
    }

    /// Signed by an unknown authority.
    pub(crate) fn signed_by_a_stranger(&self) -> Shown {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        self.signed_by(&authority, &KeyPair::generate().unwrap())
    }
}

/// The URI in a certificate of this replica.
pub(crate) fn uri(cluster: &str, replica: &str) -> String {
    format!("allclear://{cluster}/replica/{replica}")
}

/// The credentials of this replica, for a test in the role of the replica.
pub(crate) fn credentials(pki: &Pki, replica: &str) -> std::sync::Arc<allclear::net::tls::Credentials> {
    let file = |name: &str| pki.path("ca").join(replica).join(name);
    pki.issue("ca", replica);
    let options = allclear::net::tls::Options {
        files: allclear::net::tls::Files { cert: file("node.pem"), key: file("node.key"), ca: file("ca.pem") },
        realm: allclear::net::tls::CertificatePolicy { cluster: CLUSTER.into(), by: NamedBy::Uri },
        replica: replica.into(),
        max_connection_age: std::time::Duration::from_mins(5),
        clock: allclear::replica::clock::now,
    };
    allclear::net::tls::Credentials::load(options).unwrap()
}

/// The number of peers that a replica refused for this reason.
pub(crate) async fn refused(cluster: &Cluster, place: usize, reason: &str) -> u64 {
    let (status, text) = cluster.page(place, "/metrics").await;
    assert_eq!(status, 200, "{text}");
    let series = format!("allclear_peer_refusals_total{{reason=\"{reason}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}

/// Waits until the replica has refused more than `before` peers for this reason.
pub(crate) async fn refused_more(cluster: &Cluster, place: usize, reason: &str, before: u64) {
    let what = format!("more than {before} refused for {reason}");
    cluster.until_true(&what, async || refused(cluster, place, reason).await > before).await;
}

/// The address on which a replica listens for its peers.
pub(crate) fn address(cluster: &Cluster, place: usize) -> String {
    let text = std::fs::read_to_string(cluster.folder.path().join(format!("{place}.toml"))).unwrap();
    let table: toml::Table = text.parse().unwrap();
    table["cluster"]["listen"].as_str().unwrap().to_owned()
}
