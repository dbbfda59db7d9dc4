//! Checks that a request names this replica. In DNS rebinding a page of another site points its own name here, and the
//! browser sends the site's name; an address cannot be redirected.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Version, header};

use crate::replica::metrics::RefusalKind;

/// The reason for a rejection, the requested host, and the answer.
pub(super) struct RejectedRequest {
    pub(super) why: RefusalKind,
    pub(super) asked: String,
    pub(super) status: StatusCode,
    pub(super) answer: &'static str,
}

/// The host names of this replica, beside every address and `localhost`.
#[derive(Clone, Debug)]
pub struct HostNames(Vec<String>);

impl HostNames {
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| plain(&name)).chain(["localhost".into()]).collect())
    }

    pub(super) fn judge(&self, request: &Request) -> Result<(), RejectedRequest> {
        let refused =
            |why, asked: &str, status, answer| Err(RejectedRequest { why, asked: asked.to_owned(), status, answer });
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let answer = "this port is read-only; use the command allclear for changes";
            return refused(RefusalKind::Method, request.method().as_str(), StatusCode::METHOD_NOT_ALLOWED, answer);
        }
        let asked = match hosts(request) {
            Ok(asked) => asked,
            Err(why) => return refused(RefusalKind::Host, why, StatusCode::BAD_REQUEST, why),
        };
        if let Some(stranger) = asked.iter().find(|host| !self.is_own(host)) {
            let answer = "this replica has no such host name: use the address of the replica, or add the name to \
                          `status.host_names` of its configuration";
            return refused(RefusalKind::Host, stranger.as_str(), StatusCode::MISDIRECTED_REQUEST, answer);
        }
        match foreign_origin(request.headers(), asked.last()) {
            Some(origin) => refused(
                RefusalKind::Origin,
                &origin,
                StatusCode::FORBIDDEN,
                "requests from pages of another origin are refused",
            ),
            None => Ok(()),
        }
    }

    fn is_own(&self, asked: &Authority) -> bool {
        let host = asked.host();
        let is_address = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
            None => host.parse::<IpAddr>().is_ok(),
        };
        is_address || self.0.contains(&plain(host))
    }
}

fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The hosts in the request line and in the header. Plain HTTP/1.0, which no browser speaks, may have neither.
fn hosts(request: &Request) -> Result<Vec<Authority>, &'static str> {
    let mut named: Vec<Authority> = request.uri().authority().cloned().into_iter().collect();
    let mut headers = request.headers().get_all(header::HOST).iter();
    match (headers.next(), headers.next()) {
        (Some(_), Some(_)) => return Err("the request has more than one Host"),
        (Some(host), None) => {
            named.push(Authority::try_from(host.as_bytes()).map_err(|_| "the Host of the request is unreadable")?);
        }
        (None, _) if request.version() == Version::HTTP_11 => return Err("the request has no Host"),
        (None, _) => {}
    }
    // A user name before an @ is no part of a host.
    if named.iter().any(|host| host.as_str().contains('@')) {
        Err("the Host of the request is unreadable")
    } else {
        Ok(named)
    }
}

/// The origin of a page on another site; browsers send the origin unless the request comes from this page.
fn foreign_origin(headers: &HeaderMap, asked: Option<&Authority>) -> Option<String> {
    let foreign = |origin: &str| {
        let own = asked.map(Authority::as_str).unwrap_or_default();
        origin.split_once("://").is_none_or(|(_, from)| !from.eq_ignore_ascii_case(own))
    };
    let told = headers.get_all(header::ORIGIN).iter();
    told.map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned()).find(|origin| foreign(origin))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn judged(method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
        let names = HostNames::new(["db-0".into(), "DB-0.example.com.".into()]);
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        names.judge(&request.body(Body::empty()).unwrap()).map_or_else(|it| it.status.as_u16(), |()| 200)
    }

    #[test]
    fn addresses_and_own_names_are_answered_and_no_others() {
        for own in [
            "127.0.0.1",
            "10.0.0.4:7421",
            "[::1]:7421",
            "[fd00::4]",
            "localhost:1",
            "LOCALHOST",
            "db-0",
            "db-0.example.com:80",
        ] {
            assert_eq!(judged("GET", "/", &[("host", own)]), 200, "{own}");
        }
        for other in [
            "evil.example",
            "db-0.evil.example:7421",
            "127.0.0.1.evil.example",
            "db-1",
            "localhost.evil",
            "[v1.x]",
            "2130706433",
        ] {
            assert_eq!(judged("GET", "/", &[("host", other)]), 421, "{other}");
        }
        for wrong in ["", "a b", "localhost@evil.example", "evil.example@localhost", "http://localhost", "::1"] {
            assert_eq!(judged("GET", "/", &[("host", wrong)]), 400, "{wrong:?}");
        }
        assert_eq!(judged("GET", "/", &[]), 400);
        assert_eq!(judged("GET", "/", &[("host", "localhost"), ("host", "evil.example")]), 400);
    }

    #[test]
    fn whom_the_request_line_names_counts_too() {
        assert_eq!(judged("GET", "http://10.0.0.4:7421/", &[("host", "localhost")]), 200);
        assert_eq!(judged("GET", "http://evil.example/", &[("host", "localhost")]), 421);
        assert_eq!(judged("GET", "http://localhost/", &[("host", "evil.example")]), 421);
        assert_eq!(judged("GET", "http://localhost/", &[]), 400);
    }

    #[test]
    fn a_page_from_elsewhere_is_refused_and_the_own_one_is_not() {
        let asks = |host, origin| judged("GET", "/v1/status", &[("host", host), ("origin", origin)]);
        assert_eq!(asks("127.0.0.1:7421", "http://127.0.0.1:7421"), 200);
        assert_eq!(asks("db-0", "https://DB-0"), 200);
        for elsewhere in ["null", "", "http://evil.example", "http://127.0.0.1:3000", "file://", "127.0.0.1:7421"] {
            assert_eq!(asks("127.0.0.1:7421", elsewhere), 403, "{elsewhere:?}");
        }
    }

    #[test]
    fn what_is_not_for_reading_is_refused_before_anything_else() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "PURGE"] {
            assert_eq!(judged(method, "http://evil.example/", &[]), 405, "{method}");
        }
        assert_eq!(judged("HEAD", "/", &[("host", "localhost")]), 200);
    }
}
