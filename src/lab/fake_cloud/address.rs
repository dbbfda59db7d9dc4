//! Addresses of the fake cloud: loopback only, so that no program mistakes the fake cloud for the real service.

use std::net::SocketAddr;

/// Number of VMs in one cloud, each with a port.
pub(super) const MOST_VMS: usize = 100;
const LONGEST_NAME: usize = 64;

pub(super) fn is_allowed(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Whether a name needs no escaping, for names are part of queries and lines.
pub(super) fn is_vm_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_plain) && !name.starts_with('.')
}

/// The port of the VM at a position: counted on from the main port, or any free port when the main port is any free
/// port.
pub(super) fn of_vm(listen: SocketAddr, position: usize) -> Option<SocketAddr> {
    let port = match listen.port() {
        0 => 0,
        main => main.checked_add(u16::try_from(position).ok()?.checked_add(1)?)?,
    };
    Some(SocketAddr::new(listen.ip(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_allowed() {
        for allowed in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            assert!(is_allowed(allowed.parse().unwrap()), "{allowed}");
        }
        for refused in
            ["0.0.0.0:0", "169.254.169.254:80", "[::]:0", "10.0.0.4:0", "[fe80::1]:0", "[::ffff:169.254.169.254]:0"]
        {
            assert!(!is_allowed(refused.parse().unwrap()), "{refused}");
        }
    }

    #[test]
    fn ports_of_vms_follow_the_main_one_and_end_with_the_last_port() {
        let port = |listen: &str, position| of_vm(listen.parse().unwrap(), position).map(|address| address.port());
        assert_eq!(port("127.0.0.1:0", 3), Some(0));
        assert_eq!(port("127.0.0.1:8000", 2), Some(8003));
        assert_eq!(port("127.0.0.1:65535", 0), None);
    }

    #[test]
    fn names_that_need_escaping_are_refused() {
        assert!(is_vm_name("web_13"));
        for name in ["", "a/b", "..", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_vm_name(name), "{name}");
        }
    }
}
