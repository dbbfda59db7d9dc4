//! The place of a secret: a file, or a credential of systemd. No error repeats the written text, which may be the
//! secret itself.

use std::path::{Path, PathBuf};

use super::scalar;
use super::source::Value;

const CREDENTIAL: &str = "credential:";
/// The folder of the packaged unit, for processes outside of the unit.
const ELSEWHERE: &str = "/run/credentials/allclear.service";
const VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// The file of a secret, with the written text.
#[derive(Clone)]
pub(super) struct SecretFile {
    pub(super) path: PathBuf,
    pub(super) written: String,
}

/// The folder of this service's credentials.
pub(super) fn credentials(environment: &[(String, String)]) -> PathBuf {
    let set = environment.iter().find(|(name, value)| name == VARIABLE && value.starts_with('/'));
    PathBuf::from(set.map_or(ELSEWHERE, |(_, value)| value))
}

/// Parses an absolute path, or `credential:NAME`.
pub(super) fn file(value: &Value, credentials: &Path) -> Result<SecretFile, String> {
    let written =
        scalar::name(value).map_err(|_| "is not the path of a file with a secret: write the path in quotes")?;
    let path = match written.strip_prefix(CREDENTIAL) {
        Some(name) if is_name(name) => credentials.join(name),
        Some(_) => return Err("names no credential: write credential:NAME, as in LoadCredential=NAME:PATH".to_owned()),
        None if written.starts_with('/') => PathBuf::from(&written),
        None => {
            return Err("is not the path of a file with a secret: write the absolute path, beginning with /, or \
                 credential:NAME for a credential of systemd"
                .to_owned());
        }
    };
    Ok(SecretFile { path, written })
}

/// Checks a name by the rules of systemd.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b':';
    (1..=255).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::super::error::Location;
    use super::super::source::TomlShape;
    use super::*;

    fn read(text: &str) -> Result<PathBuf, String> {
        let shape = TomlShape::Text(text.to_owned());
        let value = Value { place: Location::Variable(String::new()), shape, unquoted: None };
        file(&value, &credentials(&[(VARIABLE.to_owned(), "/run/credentials/a.service".to_owned())]))
            .map(|file| file.path)
    }

    #[test]
    fn a_secret_stands_in_a_file_or_is_a_credential() {
        assert_eq!(read("/etc/token"), Ok(PathBuf::from("/etc/token")));
        assert_eq!(read("credential:pg.password"), Ok(PathBuf::from("/run/credentials/a.service/pg.password")));
        let none = ["", " ", "m4rk", "./m4rk", "m4rk\n", "credential:", "credential:../m4rk", "credential:m4 rk"];
        for wrong in none {
            let why = read(wrong).unwrap_err();
            assert!(!why.contains("m4"), "{why}");
        }
    }

    #[test]
    fn outside_of_a_service_its_credentials_are_where_systemd_keeps_them() {
        assert_eq!(credentials(&[]), Path::new(ELSEWHERE));
        assert_eq!(credentials(&[(VARIABLE.to_owned(), "here".to_owned())]), Path::new(ELSEWHERE));
    }
}
