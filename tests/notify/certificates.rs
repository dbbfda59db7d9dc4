//! Certificate authorities and their certificates, made for one test.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::{WantsServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::{ConfigBuilder, RootCertStore, ServerConfig};

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes the authority's own certificate to a file in this folder.
    pub(crate) fn file(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, self.0.pem()).unwrap();
        path
    }

    /// A server of this name or address.
    pub(crate) fn server(&self, name: &str) -> TlsAcceptor {
        let config = ServerConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        self.acceptor(name, config)
    }

    /// A server that requires a client certificate of this authority.
    pub(crate) fn strict_server(&self, name: &str) -> TlsAcceptor {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier);
        self.acceptor(name, config)
    }

    /// A certificate and the key, as files in this folder.
    pub(crate) fn issue(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        // For OpenSSL, a certificate with the name of its authority is self-signed.
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let files = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
        std::fs::write(&files.0, certificate.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        std::fs::set_permissions(&files.1, std::fs::Permissions::from_mode(0o600)).unwrap();
        files
    }

    fn acceptor(&self, name: &str, config: ConfigBuilder<ServerConfig, WantsServerCert>) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
