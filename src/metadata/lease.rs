//! What a file of a DHCP client says of option 245, in which the platform tells VMs outside a virtual network where its
//! metadata endpoint is.
//!
//! Refuses to guess: a lease whose end cannot be read is over, and a value that is not one address is told as it is.

use core::net::Ipv4Addr;
use core::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::machine::time::Timestamp;

/// Characters of a value that are shown.
const MAX_SHOWN: usize = 40;
/// Bytes of a value; four of them in octal and in quotes have 18.
const MAX_VALUE: usize = 64;
/// Seconds that stand for a lease without an end.
const FOR_EVER: u64 = u32::MAX as u64;

/// A lease that carries the option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Lease {
    pub(super) address: Result<Ipv4Addr, String>,
    ends: Ends,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    Never,
    At(Timestamp),
    Unknown,
}

impl Lease {
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        match self.ends {
            Ends::Never => false,
            Ends::At(end) => end <= now,
            Ends::Unknown => true,
        }
    }
}

/// The leases of a file that carry the option, the newest last. `written` is when the file was.
pub(super) fn read(text: &str, written: Timestamp) -> Vec<Lease> {
    if text.lines().any(opens) { of_dhclient(text) } else { of_pairs(text, written).into_iter().collect() }
}

fn opens(line: &str) -> bool {
    line.trim_start().strip_prefix("lease").is_some_and(|rest| rest.trim() == "{")
}

/// `lease { … }`, one statement on each line; leases are added at the end. Of one that was cut off at either end nothing
/// is known.
fn of_dhclient(text: &str) -> Vec<Lease> {
    let mut leases = Vec::new();
    let (mut is_open, mut value, mut ends) = (false, None, Ends::Unknown);
    for line in text.lines() {
        let statement = line.trim();
        if opens(line) {
            (is_open, value, ends) = (true, None, Ends::Unknown);
        } else if statement == "}" {
            if let Some(address) = value.take().filter(|_| is_open) {
                leases.push(Lease { address, ends });
            }
            is_open = false;
        } else if let Some(rest) = statement.strip_prefix("option unknown-245 ") {
            value = Some(address(rest.trim().trim_end_matches(';')));
        } else if let Some(rest) = statement.strip_prefix("expire ") {
            ends = end_of(rest);
        }
    }
    leases
}

/// `never;`, `epoch 1511574509;` or `6 2017/11/25 01:48:29;`, which is in UTC.
fn end_of(statement: &str) -> Ends {
    let text = statement.split(';').next().unwrap_or_default().trim();
    if text == "never" {
        return Ends::Never;
    }
    let moment = if let Some(seconds) = text.strip_prefix("epoch ") {
        seconds.trim().parse().ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
    } else {
        let (_, date) = text.split_once(' ').unwrap_or_default();
        let date = DateTime::strptime("%Y/%m/%d %H:%M:%S", date).ok();
        date.and_then(|date| date.to_zoned_datetime(TimeZone::UTC).ok()).map(|zoned| zoned.timestamp())
    };
    moment.map_or(Ends::Unknown, |moment| Ends::At(Timestamp(moment.as_millisecond())))
}

/// `KEY=value` lines of one lease, as systemd-networkd and older clients of `NetworkManager` keep them. The client writes
/// the file when the lease begins, and how long that lasts.
fn of_pairs(text: &str, written: Timestamp) -> Option<Lease> {
    let of = |key: &str| {
        let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='));
        values.next_back()
    };
    let ends = match of("LIFETIME").map(str::trim) {
        Some("infinity") => Ends::Never,
        Some(span) => match span.parse().map(Duration::from_secs).or_else(|_| humantime::parse_duration(span)) {
            Ok(span) if span.as_secs() >= FOR_EVER => Ends::Never,
            Ok(span) => Ends::At(written.plus(span)),
            Err(_) => Ends::Unknown,
        },
        None => Ends::Unknown,
    };
    Some(Lease { address: address(of("OPTION_245")?.trim()), ends })
}

/// One address that a machine can have.
fn address(value: &str) -> Result<Ipv4Addr, String> {
    let shown = || value.chars().take(MAX_SHOWN).collect::<String>();
    let bytes = Some(value).filter(|value| value.len() <= MAX_VALUE).and_then(bytes);
    let bytes = bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    let address = Ipv4Addr::from(bytes.ok_or_else(|| format!("{:?} is not one IPv4 address", shown()))?);
    // A proxy on the VM itself is as good as any; nobody else stands there.
    let is_unicast = !(address.octets()[0] == 0 || address.octets()[0] >= 224);
    if is_unicast { Ok(address) } else { Err(format!("{address} is no machine's address")) }
}

/// dhclient writes `a8:3f:81:10`, or text in quotes where every byte is a letter, or `168.63.129.16` where it was told
/// that the option is an address; the others write `a83f8110`.
fn bytes(value: &str) -> Option<Vec<u8>> {
    if let Some(quoted) = value.strip_prefix('"') {
        return quoted.strip_suffix('"').map(unquoted);
    }
    if let Ok(address) = value.parse::<Ipv4Addr>() {
        return Some(address.octets().to_vec());
    }
    let byte = |digits: &str| {
        let is_hex = (1..=2).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    if value.contains(':') {
        return value.split(':').map(byte).collect();
    }
    if !value.len().is_multiple_of(2) || !value.is_ascii() {
        return None;
    }
    (0..value.len()).step_by(2).map(|at| byte(&value[at..at + 2])).collect()
}

/// `\ooo` is a byte in octal, and any other letter behind `\` is itself.
fn unquoted(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    loop {
        let byte;
        (byte, rest) = match rest {
            [] => return bytes,
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                ((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'), after)
            }
            [b'\\', byte, after @ ..] | [byte, after @ ..] => (*byte, after),
        };
        bytes.push(byte);
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
