//! Configured headers of a receiver or collector. Secrets are in files, which are read for each request, because files
//! may be renewed.

use std::path::PathBuf;

use crate::http_client::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use crate::http_client::{Url, is_confidential};
use crate::secrets::{self, Secrets};

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Headers {
    pub written: Vec<(HeaderName, HeaderValue)>,
    /// Headers with secret values.
    pub secret: Vec<(HeaderName, PathBuf)>,
}

impl Headers {
    /// Secret values are sent only encrypted, or to this machine.
    pub fn may_go_to(&self, url: &Url) -> Result<(), String> {
        if is_confidential(url) || self.secret.is_empty() {
            return Ok(());
        }
        Err("begins with http://, and the values in `header_files` are secret: use https://".to_owned())
    }

    pub(super) async fn read(&self) -> Result<HeaderMap, String> {
        let mut headers: HeaderMap = self.written.iter().cloned().collect();
        for (name, path) in &self.secret {
            let mut value = header_value(&secrets::read(path).await?)
                .map_err(|why| format!("the content of {} {why}", path.display()))?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }
}

/// The secret values, with and without the scheme before the value (`Bearer ...`).
pub(super) fn secrets_of(headers: &HeaderMap) -> Secrets {
    let secret = headers.values().filter(|value| value.is_sensitive()).filter_map(|value| value.to_str().ok());
    Secrets::of(secret.flat_map(|value| [Some(value), value.split_once(' ').map(|(_, rest)| rest)]).flatten())
}

/// Parses a header that a configuration may set. Headers for framing, for the destination and for signatures are
/// excluded.
pub fn header_name(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text.parse().map_err(|_| "is not the name of a header".to_owned())?;
    if [HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) || name.as_str().starts_with("webhook-") {
        return Err(format!("is {name}, and allclear sets this header itself"));
    }
    Ok(name)
}

pub fn header_value(text: &str) -> Result<HeaderValue, String> {
    text.parse().map_err(|_| "is not the value of a header: write one line of visible characters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_each_time_and_its_text_is_never_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = header_name("Authorization").unwrap();
        let headers = Headers { written: Vec::new(), secret: vec![(name, file.path().to_owned())] };
        for token in ["one", "two"] {
            std::fs::write(file.path(), format!("Bearer {token}\n")).unwrap();
            assert_eq!(headers.read().await.unwrap()["authorization"], format!("Bearer {token}").as_str());
        }
        std::fs::write(file.path(), "Bearer one\nBearer two").unwrap();
        let said = headers.read().await.unwrap_err();
        assert!(said.contains("not the value of a header") && !said.contains("Bearer"), "{said}");
    }
}
