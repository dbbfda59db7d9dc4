//! Headers that go along with what is told: written in the configuration, or, where they are secrets, in files of their
//! own. A file is read each time, so that a secret that is renewed is used from then on.

use std::path::{Path, PathBuf};

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

/// More than servers take.
const LONGEST: u64 = 16 * 1024;

#[derive(Clone, PartialEq, Default, Debug)]
pub struct Headers {
    /// Names and values.
    pub written: Vec<(String, String)>,
    /// Names, and the files whose text is the value.
    pub files: Vec<(String, PathBuf)>,
}

impl Headers {
    /// An error names the header and never its value.
    pub async fn read(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.written {
            headers.insert(self::name(name)?, self::value(value).map_err(|why| format!("{name} {why}"))?);
        }
        for (name, file) in &self.files {
            let text = text_of(file).await.map_err(|why| format!("{}, for {name}: {why}", file.display()))?;
            headers.insert(self::name(name)?, value(text.trim()).map_err(|why| format!("{}: {why}", file.display()))?);
        }
        Ok(headers)
    }
}

async fn text_of(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let open = File::open(file).await.map_err(|error| error.to_string())?;
    open.take(LONGEST).read_to_string(&mut text).await.map_err(|error| error.to_string())?;
    Ok(text)
}

/// Those that the client itself writes are refused.
pub fn name(name: &str) -> Result<HeaderName, String> {
    const OWN: [&str; 6] =
        ["connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding"];
    let read: HeaderName = name.parse().map_err(|_| "is not the name of a header".to_owned())?;
    if OWN.contains(&read.as_str()) { Err("is a header that cannot be chosen".to_owned()) } else { Ok(read) }
}

pub fn value(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|_| "is not the value of a header: one line, in ASCII")?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_each_time_and_its_text_is_never_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let headers = Headers {
            written: vec![("X-Tenant".into(), "databases".into())],
            files: vec![("Authorization".into(), file.clone())],
        };
        assert!(headers.read().await.unwrap_err().contains("for Authorization: No such file"));
        for token in ["one", "two"] {
            std::fs::write(&file, format!("Bearer {token}\n")).unwrap();
            let read = headers.read().await.unwrap();
            assert_eq!(read["authorization"], format!("Bearer {token}").as_str());
            assert_eq!(read["x-tenant"], "databases");
        }
        std::fs::write(&file, "Bearer one\nBearer two").unwrap();
        let said = headers.read().await.unwrap_err();
        assert!(said.contains("not the value of a header") && !said.contains("Bearer"), "{said}");
    }

    #[test]
    fn what_the_client_writes_itself_is_refused() {
        for bad in ["Host", "content-type", "two words", ""] {
            name(bad).expect_err(bad);
        }
        name("x-api-key").unwrap();
    }
}
