//! The certificate, key and authorities of this replica. The files are read again after a change, and the credentials
//! in use are replaced only by working credentials.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::chain;
use super::files::{Files, LoadedFiles, Seen, Unfit};
use super::handshake_error::HandshakeError;
use super::handshake_errors::HandshakeErrors;
use super::names::CertificatePolicy;
use super::verifier::Verifier;
use allclear_core::model::time::Timestamp;

/// The interval of checks of the files.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The number of failed checks before a log message.
const TOLD_AT: u32 = 2;
/// The protocol inside TLS.
const HTTP2: &[u8] = b"h2";

/// The certificate of a replica, and the rules of its trust.
#[derive(Debug)]
pub struct Options {
    pub files: Files,
    pub realm: CertificatePolicy,
    pub replica: String,
    /// The age at which a connection ends. A new connection is verified by the credentials trusted then.
    pub max_connection_age: Duration,
    pub clock: fn() -> Timestamp,
}

/// Shared by all connectors and listeners.
#[derive(Debug)]
pub struct Credentials {
    options: Options,
    in_use: RwLock<LoadedFiles>,
    unfit: Mutex<Option<Spoilt>>,
    refusals: HandshakeErrors,
}

/// The reason why the current content of the files is not in use.
#[derive(Debug)]
struct Spoilt {
    why: Unfit,
    since: Timestamp,
    /// The number of failed checks in a row.
    looks: u32,
}

impl Options {
    fn read(&self) -> Result<LoadedFiles, Unfit> {
        self.files.read(&self.realm, Some(&self.replica), (self.clock)())
    }
}

impl Credentials {
    pub fn load(options: Options) -> Result<Arc<Self>, Unfit> {
        let in_use = RwLock::new(options.read()?);
        Ok(Arc::new(Self { options, in_use, unfit: Mutex::default(), refusals: HandshakeErrors::default() }))
    }

    /// Checks the files until `stop`.
    pub async fn keep_current(self: Arc<Self>, stop: CancellationToken) {
        let mut turns = interval(LOOK_EVERY);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The state of the files at the start is unknown: a file may have changed since.
        let mut taken: Option<Seen> = None;
        while stop.run_until_cancelled(turns.tick()).await.is_some() {
            let this = self.clone();
            // A file system may hang.
            let looked = tokio::task::spawn_blocking(move || this.look(taken));
            if let Some(Ok(seen)) = stop.run_until_cancelled(looked).await {
                taken = seen;
            }
        }
    }

    /// Loads the content of the files, if the content is new and valid; returns the state of the files in use.
    fn look(&self, taken: Option<Seen>) -> Option<Seen> {
        let seen = self.options.files.seen();
        if taken == Some(seen) {
            return taken;
        }
        let read = self.options.read();
        let mut unfit = self.unfit.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(found) => {
                *unfit = None;
                drop(unfit);
                self.take_over(found);
                Some(seen)
            }
            // Checked again: time may make a certificate valid, and an update of three files is not complete with the
            // first.
            Err(why) => {
                let before = unfit.take().filter(|before| before.why == why);
                let (since, looks) = before.map_or(((self.options.clock)(), 0), |before| (before.since, before.looks));
                let looks = looks.saturating_add(1);
                if looks == TOLD_AT {
                    tracing::warn!(%why, "new certificates not loaded; the previous certificates stay in use");
                }
                *unfit = Some(Spoilt { why, since, looks });
                None
            }
        }
    }

    fn take_over(&self, found: LoadedFiles) {
        let mut in_use = self.in_use.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = in_use.key.cert != found.key.cert || in_use.authorities != found.authorities;
        if is_news {
            let expires_at_ms = found.expires_at.map(|at| at.0);
            tracing::info!(names = %found.names, authorities = found.authorities.len(), expires_at_ms, "new certificates loaded");
        }
        *in_use = found;
    }

    pub fn realm(&self) -> &CertificatePolicy {
        &self.options.realm
    }

    pub fn max_connection_age(&self) -> Duration {
        self.options.max_connection_age
    }

    /// The end of the certificate in use; `None` for a certificate that never ends.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.in_use.read().unwrap_or_else(PoisonError::into_inner).expires_at
    }

    /// The reason why the current content of the files is not in use, and the time since.
    pub fn unfit(&self) -> Option<(Timestamp, String)> {
        let unfit = self.unfit.lock().unwrap_or_else(PoisonError::into_inner);
        unfit.as_ref().filter(|it| it.looks >= TOLD_AT).map(|it| (it.since, it.why.to_string()))
    }

    /// The number of refused peers so far, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.refusals.counts()
    }

    /// Counts and logs a refusal.
    pub(super) fn refused(&self, who: &str, refusal: &HandshakeError) {
        self.refusals.note(who, refusal);
    }

    /// The configuration for the next accepted connection.
    pub(super) fn to_be_dialled(&self) -> Result<Arc<ServerConfig>, rustls::Error> {
        let found = self.found();
        let mut config = ServerConfig::builder_with_provider(Arc::new(chain::provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(self.verifier(&found, None))
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(found.key)));
        config.alpn_protocols = vec![HTTP2.into()];
        // A returning peer is verified anew, by the authorities trusted then.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// The configuration for the next connection to this replica.
    pub(super) fn to_dial(&self, replica: &str) -> Result<Arc<ClientConfig>, rustls::Error> {
        let found = self.found();
        let mut config = ClientConfig::builder_with_provider(Arc::new(chain::provider()))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(&found, Some(replica)))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(found.key)));
        config.alpn_protocols = vec![HTTP2.into()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }

    fn verifier(&self, found: &LoadedFiles, dialled: Option<&str>) -> Arc<Verifier> {
        let (authorities, realm) = (found.authorities.clone(), self.options.realm.clone());
        Arc::new(Verifier { authorities, realm, dialled: dialled.map(str::to_owned) })
    }

    fn found(&self) -> LoadedFiles {
        self.in_use.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
