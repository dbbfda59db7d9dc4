//! URLs of servers. `parse_external` refuses the platform's addresses: a request to the metadata service may count as
//! an approval.

use std::net::{IpAddr, Ipv4Addr};

use reqwest::Url;

/// The platform's address inside every VM, beside the link-local addresses.
const PLATFORM: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Parses an `http` or `https` URL. Errors follow the name of a setting and do not contain the URL.
///
/// The URL standard tolerates leading blanks, line breaks, backslashes and missing slashes; configurations should not.
pub fn parse(text: &str) -> Result<Url, String> {
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| without_scheme(text, scheme));
    let rest = rest.ok_or("has to begin with https:// or http://")?;
    let is_tolerated = |letter: char| letter.is_whitespace() || letter.is_control() || "\\\"<>".contains(letter);
    if rest.starts_with('/') || rest.contains(is_tolerated) {
        return Err("is not valid: the host is missing, or a character is not allowed".to_owned());
    }
    if !rest.split(['/', '?', '#']).next().is_some_and(str::is_ascii) {
        return Err("is not valid: write the name of the host in ASCII, as in xn--bcher-kva.example".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not valid: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("contains a user: put credentials into a header".to_owned());
    }
    Ok(url)
}

/// Parses the URL of a server that is not the platform. Every spelling of an IP address is understood, because the
/// URL parser normalizes numbers.
pub fn parse_external(text: &str) -> Result<Url, String> {
    let url = parse(text)?;
    let is_platform = match ip(&url) {
        Some(IpAddr::V4(ip)) => ip.is_link_local() || ip == PLATFORM,
        Some(IpAddr::V6(ip)) => ip.is_unicast_link_local(),
        None => false,
    };
    if is_platform { Err("belongs to Azure".to_owned()) } else { Ok(url) }
}

/// Whether a secret in a request stays confidential: the request is encrypted, or does not leave this machine.
pub fn is_confidential(url: &Url) -> bool {
    let is_loopback = url.host_str() == Some("localhost") || ip(url).is_some_and(|ip| ip.is_loopback());
    url.scheme() == "https" || is_loopback
}

fn without_scheme<'t>(text: &'t str, scheme: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

fn ip(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
    host.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_platform_are_refused_however_they_are_written() {
        for bad in [
            "http://169.254.169.254/metadata",
            "http://169.254.169.254./metadata",
            "HTTP://169.254.169.254:80",
            "http://168.63.129.16/",
            "https://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "http://0xa9fea9fe/",
            "http://0XA9FEA9FE/",
            "http://2852039166/",
            "http://169.254.43518/",
            "http://169%2e254.169.254/",
        ] {
            assert_eq!(parse_external(bad), Err("belongs to Azure".to_owned()), "{bad}");
            assert!(parse(bad).is_ok(), "{bad}");
        }
    }

    #[test]
    fn only_the_url_of_a_server_is_parsed() {
        for bad in [
            "https://user:word@example.com/",
            "ftp://example.com/",
            "/path",
            "https://example.com:99999/",
            "https://:443/",
            "http:///a",
            "http://",
            "http:a",
            "http:\\\\a",
            "http://a b/",
            " http://a",
            "http://a\nhttp://b",
            "http://0xa9fea9fe.5.6.7.8/",
            "nothing",
            "",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for good in ["https://hooks.example.com/a?b=c", "http://127.0.0.1:80/", "http://[::1]:80/", "https://10.0.0.4"]
        {
            assert!(parse_external(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_name_outside_ascii_is_refused_with_what_to_write() {
        for bad in ["https://bücher.example/", "http://１６９.254.169.254/"] {
            assert!(parse(bad).unwrap_err().contains("in ASCII"), "{bad}");
        }
        for good in ["https://xn--bcher-kva.example/", "https://example.com/bücher?ä#ö"] {
            assert!(parse_external(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn secrets_stay_confidential_over_https_and_on_loopback() {
        for (text, expected) in [
            ("https://10.0.0.4/", true),
            ("http://[::1]:80/", true),
            ("http://127.0.0.2/", true),
            ("http://localhost/", true),
            ("http://10.0.0.4/", false),
            ("http://localhost.example/", false),
        ] {
            assert_eq!(is_confidential(&parse(text).unwrap()), expected, "{text}");
        }
    }
}
