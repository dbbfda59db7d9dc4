//! `http` and its settings: the address of a server, its authorities, and the login.

use super::reader::TomlTable;
use super::scalar;
use super::source::Value;
use crate::http_client::{ClientCertificate, Login, Options, Url, is_confidential, parse_external};

/// Keys with a meaning only beside `http`.
const BESIDE: [&str; 6] = ["ca", "cert", "key", "username", "password_file", "bearer_file"];

/// The address of a request with its options. Secrets are in files, which are read at each request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Http {
    pub url: String,
    pub options: Options,
}

/// Reads the address; `None` where `http` is left out or wrong.
pub(super) fn read(table: &mut TomlTable<'_>) -> Option<Http> {
    let url = table.optional("http", scalar::hook_url);
    read_beside(table, url)
}

/// Reads the address; a missing key is a mistake too. `why` is the purpose of the address.
pub(super) fn required(table: &mut TomlTable<'_>, why: &str) -> Option<Http> {
    let url = table.required("http", scalar::hook_url, why);
    read_beside(table, url.map(|url| url.value))
}

fn read_beside(table: &mut TomlTable<'_>, url: Option<String>) -> Option<Http> {
    let ca = table.optional("ca", scalar::path);
    let certificate = table.optional("cert", scalar::path);
    let key = table.secret_file("key");
    let username = table.optional("username", username);
    let password_file = table.secret_file("password_file");
    let bearer_file = table.secret_file("bearer_file");
    refuse_halves(table);
    refuse_in_vain(table, url.as_deref().and_then(|url| parse_external(url).ok()).as_ref());
    let basic = username.zip(password_file).map(|(username, password_file)| Login::Basic { username, password_file });
    let bearer = bearer_file.map(|token_file| Login::Bearer { token_file });
    let identity = certificate.zip(key).map(|(certificate, key)| ClientCertificate { certificate, key });
    Some(Http { url: url?, options: Options { ca, identity, login: basic.or(bearer) } })
}

/// A user name without a colon: basic authentication ends the name at the first colon.
fn username(value: &Value) -> Result<String, String> {
    let name = scalar::name(value)?;
    // The text after the colon may be a password.
    if name.contains(':') { Err("contains a colon, and a colon ends the name".to_owned()) } else { Ok(name) }
}

/// Reports keys that need each other, and keys that exclude each other.
fn refuse_halves(table: &TomlTable<'_>) {
    let path = table.path();
    for (one, other) in [("cert", "key"), ("username", "password_file")] {
        for (there, missing) in [(one, other), (other, one)] {
            if table.has(there) && !table.has(missing) {
                table.mistake(&table.place_of(there), format!("`{path}.{there}` needs `{missing}`: write both keys"));
            }
        }
    }
    if table.has("bearer_file") && (table.has("username") || table.has("password_file")) {
        let message = format!("`{path}` has both `bearer_file` and a user with a password: remove one");
        table.mistake(&table.place_of("bearer_file"), message);
    }
}

/// Reports keys without an address, certificates without encryption, and secrets that would leave the machine in plain
/// text.
fn refuse_in_vain(table: &TomlTable<'_>, url: Option<&Url>) {
    let refuse = |key: &str, why: &str| table.mistake(&table.place_of(key), format!("`{}.{key}` {why}", table.path()));
    for key in BESIDE.into_iter().filter(|key| table.has(key)) {
        match url {
            None if !table.has("http") => refuse(key, "has no effect without `http`, the address for the request"),
            Some(url) if url.scheme() == "http" && ["ca", "cert", "key"].contains(&key) => {
                refuse(key, "has no effect, because `http` begins with http://: write https://");
            }
            Some(url) if !is_confidential(url) && ["password_file", "bearer_file"].contains(&key) => {
                refuse(key, "would be sent unencrypted to another machine: write https:// in `http`");
            }
            _ => {}
        }
    }
}
