//! The server of a hook, its URLs, and the removal of secrets from its texts.

use core::fmt::Display;
use std::io::{self, Write as _};

use crate::hooks::HookOutcome;
use crate::http_client::{HttpClient, Method, Options, RequestBuilder, Url, is_confidential, parse_external};
use crate::secrets::Secrets;

pub(super) struct HookServer {
    client: HttpClient,
    pub(super) url: Url,
    has_login: bool,
    secrets: Secrets,
}

impl HookServer {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// An invalid address is a failed hook; an unusable file may become usable later, when the file is replaced.
    pub(super) async fn new(url: &str, options: &Options) -> Result<Self, HookOutcome> {
        let url = parse_external(url).map_err(|why| HookOutcome::Failed(format!("the address of the hook {why}")))?;
        let client = HttpClient::new(&url, options).await;
        let client = client.map_err(|why| HookOutcome::Blocked(format!("nothing was sent: {why}")))?;
        // Tokens often are in the query of an address, whole.
        let secrets = client.secrets().clone().and(url.query());
        Ok(Self { client, url, has_login: options.login.is_some(), secrets })
    }

    /// Prints a text of the hook to standard output, without secrets, which the server may repeat.
    pub(super) fn say(&self, word: &str, what: impl Display) {
        // The standard output may have no reader any more.
        let _ = writeln!(io::stdout(), "{word}: {}", self.secrets.cut(&what.to_string()));
    }

    /// The outcome, with the secrets removed from its reason.
    pub(super) fn without_secrets(&self, ended: HookOutcome) -> HookOutcome {
        ended.reworded(|reason| self.secrets.cut(reason))
    }

    /// A URL that the server sent, if the URL has the server's own origin.
    pub(super) fn own(&self, location: &str) -> Result<Url, String> {
        let elsewhere = || format!("the server named {location:?}, which is not on {}", self.url.authority());
        let url = self.url.join(location).map_err(|_| elsewhere())?;
        if url.origin() == self.url.origin() && url.username().is_empty() { Ok(url) } else { Err(elsewhere()) }
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Whether a request to this URL may carry the login, if there is a login.
    pub(super) fn may_log_in_at(&self, url: &Url) -> bool {
        !self.has_login || is_confidential(url)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::http_client::Login;

    async fn server(url: &str) -> Result<HookServer, HookOutcome> {
        HookServer::new(url, &Options::default()).await
    }

    #[tokio::test]
    async fn only_what_is_on_the_same_server_is_its_own() {
        let server = server("http://127.0.0.1:8008/switch").await.unwrap();
        for good in ["/jobs/1", "jobs/1", "http://127.0.0.1:8008/jobs/1", "?job=1"] {
            assert!(server.own(good).is_ok(), "{good}");
        }
        for bad in ["http://127.0.0.1:8009/", "//10.0.0.1/", "https://127.0.0.1:8008/", "http://a@127.0.0.1:8008/"] {
            assert!(server.own(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn an_address_of_the_platform_has_failed_and_a_file_that_is_missing_is_waited_for() {
        assert!(matches!(server("http://169.254.169.254/").await, Err(HookOutcome::Failed(_))));
        let login = Login::Bearer { token_file: PathBuf::from("/nowhere/token") };
        let options = Options { login: Some(login), ..Options::default() };
        let missing = HookServer::new("http://127.0.0.1/", &options).await;
        assert!(matches!(missing, Err(HookOutcome::Blocked(why)) if why.contains("/nowhere/token")));
    }
}
