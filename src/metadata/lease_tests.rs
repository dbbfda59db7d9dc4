//! Leases as the clients write them, and as nobody should.

use super::*;

const NOW: Timestamp = Timestamp(1_767_225_600_000);
const HOUR: Duration = Duration::from_hours(1);
const MEANT: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Those that are not over.
fn told(text: &str) -> Vec<Result<Ipv4Addr, String>> {
    let leases = read(text, NOW.minus(HOUR));
    leases.into_iter().filter(|lease| !lease.is_over(NOW)).map(|lease| lease.address).collect()
}

fn of_dhclient(value: &str, end: &str) -> String {
    format!("lease {{\n  interface \"eth0\";\n  option unknown-245 {value};\n  expire {end};\n}}\n")
}

#[test]
fn an_address_is_read_in_every_spelling() {
    for value in ["a8:3f:81:10", "A8:3F:81:10", r#""\250?\201\020""#, r#""\250\077\201\020""#, "168.63.129.16"] {
        assert_eq!(told(&of_dhclient(value, "never")), [Ok(MEANT)], "{value}");
    }
    // All of its bytes are letters, and one of them has a meaning in quotes; without zeros in front of hexadecimal ones.
    assert_eq!(told(&of_dhclient(r#""bL\"4""#, "never")), [Ok(Ipv4Addr::new(98, 76, 34, 52))]);
    assert_eq!(told(&of_dhclient("a:0:1:b", "never")), [Ok(Ipv4Addr::new(10, 0, 1, 11))]);
    assert_eq!(told("OPTION_245=a83f8110\nLIFETIME=7200\n"), [Ok(MEANT)]);
}

#[test]
fn a_lease_counts_until_its_end_and_not_at_all_where_that_cannot_be_read() {
    for (end, counts) in [
        ("never", true),
        ("4 2026/01/01 00:00:01", true),
        ("4 2026/01/01 00:00:00", false),
        ("6 2017/11/25 01:48:29", false),
        ("epoch 1767225601; # Thu Jan  1 00:00:01 2026", true),
        ("epoch 1767225600", false),
        ("epoch 99999999999999999999", false),
        ("soon", false),
        ("", false),
        ("4 2026/13/45 99:00:00", false),
    ] {
        assert_eq!(told(&of_dhclient("a8:3f:81:10", end)).len(), usize::from(counts), "{end:?}");
    }
    assert_eq!(told("lease {\n option unknown-245 a8:3f:81:10;\n}\n"), []);
    for (lifetime, counts) in [
        ("LIFETIME=3601", true),
        ("LIFETIME=3600", false),
        ("LIFETIME=infinity", true),
        ("LIFETIME=4294967295", true),
        ("LIFETIME=1d", true),
        ("LIFETIME=1min 5s", false),
        ("LIFETIME=99999999999999999999", false),
        ("LIFETIME=", false),
        ("", false),
    ] {
        assert_eq!(told(&format!("OPTION_245=a83f8110\n{lifetime}\n")).len(), usize::from(counts), "{lifetime:?}");
    }
}

#[test]
fn the_newest_lease_is_the_last_and_one_that_was_cut_off_is_none() {
    let two = of_dhclient("a8:3f:81:10", "never") + &of_dhclient("7f:0:0:2", "never");
    assert_eq!(told(&two), [Ok(MEANT), Ok(Ipv4Addr::new(127, 0, 0, 2))]);
    let end_of_one = "option unknown-245 a:0:0:1;\n  expire never;\n}\n".to_owned() + &two;
    assert_eq!(told(&end_of_one).len(), 2);
    assert_eq!(told(&(two + "lease {\n  option unknown-245 a:0:0:1;\n  expire never;\n")).len(), 2);
    assert_eq!(told("lease {\n  option subnet-mask 255.255.255.0;\n  expire never;\n}\n"), []);
    assert_eq!(told("# This is private data. Do not parse.\nADDRESS=10.0.0.4\nLIFETIME=86400\n"), []);
}

#[test]
fn what_is_no_machines_address_is_told_as_it_is() {
    for value in ["0:0:0:0", "0.1.2.3", "e0:0:0:1", "ff:ff:ff:ff", "240.0.0.1"] {
        let told = told(&of_dhclient(value, "never")).remove(0).unwrap_err();
        assert!(told.ends_with("is no machine's address"), "{value}: {told}");
    }
    let long = "a8:".repeat(30_000);
    for value in [
        "",
        "a8",
        "a8:3f:81",
        "a8:3f:81:10:a8",
        "a8:3f:81:110",
        "+8:3f:81:10",
        r#"""#,
        r#""\"#,
        "a83f811",
        "é8:3f",
        &long,
    ] {
        let told = told(&of_dhclient(value, "never")).remove(0).unwrap_err();
        assert!(told.ends_with("is not one IPv4 address") && told.len() < 200, "{value}: {told}");
    }
    assert!(told("OPTION_245=a83f8110a83f8110\nLIFETIME=7200\n").remove(0).is_err());
}

#[test]
fn whatever_a_file_holds_is_read_without_a_panic() {
    let good = of_dhclient(r#""\250?\201\020""#, "4 2026/01/01 00:00:01") + "OPTION_245=a83f8110\nLIFETIME=1d 2h\n";
    for cut in 0..good.len() {
        let _ = told(&good[..cut]);
        let _ = told(&good[cut..]);
        for strange in ['\0', 'é', '"', '\\', '}', '\n', ':'] {
            let _ = told(&format!("{}{strange}{}", &good[..cut], &good[cut + 1..]));
        }
    }
}
