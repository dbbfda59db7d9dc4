//! Clients: `plain` for the metadata service, `HttpClient` for every other server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Method, RequestBuilder, Url};
use rustls::ClientConfig;

use super::address::is_confidential;
use super::reason;
use super::tls::{self, ClientCertificate};
use crate::secrets::{self, Secrets};

const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Options for the check of a server's certificate and for authentication. The default trusts the system's certificate
/// authorities and does not authenticate.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// PEM file of certificate authorities, trusted beside the system's.
    pub ca: Option<PathBuf>,
    pub identity: Option<ClientCertificate>,
    pub login: Option<Login>,
}

/// An `Authorization` header whose secret is read from a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Login {
    Basic { username: String, password_file: PathBuf },
    Bearer { token_file: PathBuf },
}

impl Options {
    /// Every file read for a request; the first list has the files that only the client may read.
    pub fn files(&self) -> (Vec<&Path>, Vec<&Path>) {
        let key = self.identity.as_ref().map(|identity| identity.key.as_path());
        let open = self.ca.iter().chain(self.identity.as_ref().map(|identity| &identity.certificate));
        let secret = self.login.as_ref().map(Login::file).into_iter().chain(key);
        (secret.collect(), open.map(PathBuf::as_path).collect())
    }
}

/// A client for the server of one URL. Connections are not kept, so a failed connection carried no request.
pub struct HttpClient {
    http: reqwest::Client,
    authorization: Option<HeaderValue>,
    secrets: Secrets,
}

impl HttpClient {
    /// Reads all files of the options; the system's certificate authorities only if the URL is `https`.
    ///
    /// # Errors
    /// The file that cannot be read or trusted, or a login that would be sent unencrypted to another machine.
    pub async fn new(url: &Url, options: &Options) -> Result<Self, String> {
        Self::for_user(url, options, allclear_files::own_uid()).await
    }

    /// Makes a client as [`HttpClient::new`], for requests as the user `uid`, who may own the files.
    pub async fn for_user(url: &Url, options: &Options, uid: u32) -> Result<Self, String> {
        let authorization = match &options.login {
            Some(_) if !is_confidential(url) => {
                return Err("the credentials would be sent unencrypted: use https://".to_owned());
            }
            Some(login) => Some(login.header(uid).await?),
            None => None,
        };
        let (authorization, secrets) = authorization.unzip();
        let (is_https, ca, identity) = (url.scheme() == "https", options.ca.clone(), options.identity.clone());
        let read = move || tls::read(is_https, ca.as_deref(), identity.as_ref(), uid);
        let tls = tokio::task::spawn_blocking(read).await;
        let builder = builder(tls.map_err(|error| error.to_string())??);
        let http = builder.connect_timeout(CONNECT_WITHIN).pool_max_idle_per_host(0).build();
        Ok(Self { http: http.map_err(|error| reason(&error))?, authorization, secrets: secrets.unwrap_or_default() })
    }

    /// Secrets of the login, which the server's messages may repeat.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// A request with the login of the options. A request to another URL is sent without the login if not confidential.
    pub fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let authorization = self.authorization.clone().filter(|_| is_confidential(&url));
        let request = self.http.request(method, url);
        match authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        }
    }
}

impl Login {
    fn file(&self) -> &Path {
        match self {
            Self::Basic { password_file: file, .. } | Self::Bearer { token_file: file } => file,
        }
    }

    /// The header with its secrets: the password, and values derived from the password.
    async fn header(&self, uid: u32) -> Result<(HeaderValue, Secrets), String> {
        let file = self.file();
        let secret = secrets::read_for(file, uid).await?;
        let (scheme, sent) = match self {
            Self::Basic { username, .. } => ("Basic", BASE64_STANDARD.encode(format!("{username}:{secret}"))),
            Self::Bearer { .. } => ("Bearer", secret.clone()),
        };
        let (value, secrets) = (format!("{scheme} {sent}"), Secrets::of([secret.as_str(), &sent]));
        let mut value: HeaderValue = value
            .parse()
            .map_err(|_| format!("{}: the value is not one line of visible characters", file.display()))?;
        value.set_sensitive(true);
        Ok((value, secrets))
    }
}

/// The builder of the metadata service's client. The service speaks plain HTTP: the client trusts no certificate
/// authority, so every `https` request fails.
pub fn plain() -> Result<ClientBuilder, String> {
    Ok(builder(tls::read(false, None, None, allclear_files::own_uid())?))
}

fn builder(tls: ClientConfig) -> ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .http1_only()
        .user_agent(concat!("allclear/", env!("CARGO_PKG_VERSION")))
}
