//! The signature of a notification by Standard Webhooks: the receiver verifies its sender, its content and its time.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;

use super::encoding::percent;
use crate::export::headers::header_value;
use crate::http_client::header::HeaderMap;
use crate::secrets;
use allclear_core::model::time::Timestamp;

const PREFIX: &str = "whsec_";
/// The scheme's limits for a key, in bytes.
const SHORTEST: usize = 24;
const LONGEST: usize = 64;

/// The key; `None` where notifications are not signed.
pub(super) async fn key(file: Option<&Path>) -> Result<Option<hmac::Key>, String> {
    let Some(file) = file else { return Ok(None) };
    let secret = secrets::read(file).await?;
    parse(&secret).map(Some).ok_or_else(|| {
        let advice = "make a key with `printf whsec_; openssl rand -base64 32`";
        format!("{}: not a key of {SHORTEST} to {LONGEST} bytes in base64: {advice}", file.display())
    })
}

fn parse(secret: &str) -> Option<hmac::Key> {
    let bytes = BASE64_STANDARD.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).ok()?;
    (SHORTEST..=LONGEST).contains(&bytes.len()).then(|| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// Signs a body with the time of sending.
pub(super) fn sign(
    key: &hmac::Key,
    notice: &str,
    sent_at: Timestamp,
    body: &[u8],
    headers: &mut HeaderMap,
) -> Result<(), String> {
    let (id, seconds) = (percent(notice), sent_at.0.div_euclid(1_000));
    let mut signed = format!("{id}.{seconds}.").into_bytes();
    signed.extend_from_slice(body);
    let signature = BASE64_STANDARD.encode(hmac::sign(key, &signed));
    headers.insert("webhook-id", header_value(&id)?);
    headers.insert("webhook-timestamp", seconds.into());
    headers.insert("webhook-signature", header_value(&format!("v1,{signature}"))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_base64_of_a_fitting_length() {
        let of = |bytes: usize| BASE64_STANDARD.encode(vec![7; bytes]);
        assert!(parse(&of(24)).is_some() && parse(&format!("whsec_{}", of(64))).is_some());
        for bad in [of(23), of(65), "whsec_".into(), "not base64!".into()] {
            assert!(parse(&bad).is_none(), "{bad}");
        }
    }

    /// Made with Python's hmac, for a key of 32 bytes 7.
    #[test]
    fn a_signature_is_that_of_id_time_and_body() {
        let (key, mut headers) = (parse(&BASE64_STANDARD.encode([7; 32])).unwrap(), HeaderMap::new());
        sign(&key, "A-1@7/started", Timestamp(1_767_225_600_999), b"{\"a\":1}", &mut headers).unwrap();
        assert_eq!(headers["webhook-id"], "A-1@7/started");
        assert_eq!(headers["webhook-timestamp"], "1767225600");
        assert_eq!(headers["webhook-signature"], "v1,7aygH/hqSLmvxzJyBFt+3OgtPb7xdjIEkBTPMRYSGgQ=");
    }
}
