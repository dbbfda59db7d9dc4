//! Tokens of the VM's managed identity, with which the VM signs in to other services of Azure.

use core::time::Duration;

use reqwest::Url;
use serde_json::Value;

use super::document;
use super::no_information::NoInformation;

/// The limit in bytes of a token.
const MAX_TOKEN: usize = 16 * 1024;

/// A token, kept out of all output.
pub struct IdentityToken {
    pub value: String,
    /// How long the service accepts the token, from its answer on.
    pub lasts: Duration,
}

/// The address of a token below `base`, the address of the service. `client_id` selects one of several identities.
pub(super) fn url(base: &str, audience: &str, client_id: Option<&str>) -> String {
    let fixed = [("api-version", "2018-02-01"), ("resource", audience)].into_iter();
    let query = fixed.chain(client_id.map(|id| ("client_id", id)));
    let url = Url::parse_with_params(&format!("{base}/metadata/identity/oauth2/token"), query);
    url.map_or_else(|_| base.to_owned(), String::from)
}

/// A token that is too long, empty, or without a lifetime counts as missing.
pub(super) fn read(status: u16, body: &[u8]) -> Result<IdentityToken, NoInformation> {
    let fields = document::accepted(status, body)?;
    let value = fields.get("access_token").and_then(Value::as_str);
    let value =
        value.filter(|value| (1..=MAX_TOKEN).contains(&value.len()) && value.bytes().all(|it| it.is_ascii_graphic()));
    let seconds = match fields.get("expires_in") {
        Some(Value::String(digits)) => digits.parse().ok(),
        Some(Value::Number(number)) => number.as_u64(),
        _ => None,
    };
    let token = value.zip(seconds.map(Duration::from_secs));
    token.map(|(value, lasts)| IdentityToken { value: value.to_owned(), lasts }).ok_or(NoInformation::NoToken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_value_and_a_lifetime() {
        for lifetime in ["\"86400\"", "86400"] {
            let body = format!(r#"{{"access_token": "t", "expires_in": {lifetime}, "token_type": "Bearer"}}"#);
            let token = read(200, body.as_bytes()).ok().unwrap();
            assert_eq!((token.value.as_str(), token.lasts), ("t", Duration::from_hours(24)), "{lifetime}");
        }
        let no_token = |body: &str| matches!(read(200, body.as_bytes()), Err(NoInformation::NoToken));
        for body in [
            "{}",
            r#"{"access_token": "t"}"#,
            r#"{"access_token": "", "expires_in": 9}"#,
            r#"{"access_token": "a b", "expires_in": 9}"#,
            r#"{"access_token": "t", "expires_in": "soon"}"#,
        ] {
            assert!(no_token(body), "{body}");
        }
        assert!(matches!(read(400, br#"{"error": "invalid_request"}"#), Err(NoInformation::Status { code: 400, .. })));
    }

    #[test]
    fn the_audience_and_the_identity_are_in_the_query() {
        let query = "http://m/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Farm.test%2F";
        assert_eq!(url("http://m", "https://arm.test/", None), query);
        assert_eq!(url("http://m", "https://arm.test/", Some("a b")), format!("{query}&client_id=a+b"));
    }
}
