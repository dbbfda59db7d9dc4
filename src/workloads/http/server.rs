//! The server of a hook, and the URLs that belong to it.

use crate::http_client::{Client, Method, Options, RequestBuilder, Url, parse_external};

pub(super) struct Server {
    client: Client,
    pub(super) url: Url,
}

impl Server {
    pub(super) async fn new(url: &str) -> Result<Self, String> {
        let url = parse_external(url).map_err(|why| format!("the address of the hook {why}"))?;
        if url.scheme() != "http" {
            return Err("the address of the hook has to begin with http://".to_owned());
        }
        Ok(Self { client: Client::new(&url, &Options::default()).await?, url })
    }

    /// A URL that the server sent, if the URL has the server's own origin.
    pub(super) fn own(&self, location: &str) -> Result<Url, String> {
        let elsewhere = || format!("it named {location:?}, which is not on {}", self.url.authority());
        let url = self.url.join(location).map_err(|_| elsewhere())?;
        if url.origin() == self.url.origin() && url.username().is_empty() { Ok(url) } else { Err(elsewhere()) }
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_is_on_the_same_server_is_its_own() {
        let server = Server::new("http://127.0.0.1:8008/switch").await.unwrap();
        for good in ["/jobs/1", "jobs/1", "http://127.0.0.1:8008/jobs/1", "?job=1"] {
            assert!(server.own(good).is_ok(), "{good}");
        }
        for bad in ["http://127.0.0.1:8009/", "//10.0.0.1/", "https://127.0.0.1:8008/", "http://a@127.0.0.1:8008/"] {
            assert!(server.own(bad).is_err(), "{bad}");
        }
    }
}
