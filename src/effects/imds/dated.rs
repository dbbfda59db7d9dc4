//! The `Date` of an answer: the time of the answering server. Rejects nothing: an unreadable date is `None`.

use reqwest::header::{DATE, HeaderMap};

use super::date;
use allclear_core::model::time::Timestamp;

/// Reads a date in any spelling observed in `NotBefore`; `None` if there are several dates.
pub(super) fn read(headers: &HeaderMap) -> Option<Timestamp> {
    let mut dates = headers.get_all(DATE).iter();
    let only = dates.next().filter(|_| dates.next().is_none())?;
    date::read(only.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn one_date_is_read_and_nothing_else_is() {
        let of = |dates: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for date in dates {
                headers.append(DATE, HeaderValue::from_bytes(date).unwrap());
            }
            read(&headers).map(|at| at.0)
        };
        let right: &[u8] = b"Mon, 11 Apr 2022 22:26:58 GMT";
        assert_eq!(of(&[right]), Some(1_649_716_018_000));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[right, right]), None);
        let long = vec![b'9'; 100_000];
        for wrong in [&b""[..], b"now", b"\xff\xfe", b"Mon, 99 Apr 2022 22:26:58 GMT", &long] {
            assert_eq!(of(&[wrong]), None);
        }
    }
}
