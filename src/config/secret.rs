//! Which variables of a hook hold a secret, as far as names and values tell. A file is the better place for one.

const ENDINGS: [&str; 9] = ["PASSWORD", "PASSWD", "PASSPHRASE", "PWD", "SECRET", "TOKEN", "KEY", "AUTH", "CREDENTIALS"];

/// Where a secret stands is none, nor is nothing.
pub fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_named_so = ENDINGS.iter().any(|ending| name.ends_with(ending)) && !value.starts_with('/');
    !value.is_empty() && (is_named_so || has_password(value))
}

/// As an address of a database may have one: `scheme://user:password@host`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_name_or_by_what_it_is() {
        for (name, value) in [
            ("PGPASSWORD", "x"),
            ("MYSQL_PWD", "x"),
            ("api_token", "x"),
            ("REDISCLI_AUTH", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("DSN", "postgres://me:x@db-0:5432/orders"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("PGPORT", "5432"),
            ("REDIS_PASSWORD_FILE", "/etc/redis/password"),
            ("PGSSLKEY", "/etc/tls/key.pem"),
            ("PGPASSWORD", ""),
            ("DSN", "postgres://me@db-0:5432/orders"),
            ("DSN", "http://db-0:8008/a@b"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }
}
