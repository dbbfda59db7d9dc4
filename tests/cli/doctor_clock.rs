//! `allclear doctor` beside a metadata service with another time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use super::doctor::{Bench, any};

/// Azure writes the ends of notices in its own time.
#[test]
fn a_clock_that_differs_from_the_time_of_the_metadata_service_is_told() {
    let bench = Bench::new();
    let (_, findings) = bench.asked(&bench.text());
    assert!(any(&findings, "this clock agrees with the time of the metadata service"), "{findings:#?}");
    for (date, what) in [
        ("Date: Thu, 01 Jan 2026 12:00:00 GMT\r\n", "s ahead of the time of the metadata service"),
        ("Date: Sun, 01 Jan 2090 12:00:00 GMT\r\n", "s behind the time of the metadata service"),
        ("", "the metadata service does not tell its time"),
    ] {
        let listener = TcpListener::bind("127.0.0.3:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let document = r#"{"DocumentIncarnation":1,"Events":[]}"#;
            let length = document.len();
            for _ in 0..2 {
                let (mut met, _) = listener.accept().unwrap();
                let mut first = String::new();
                BufReader::new(met.try_clone().unwrap()).read_line(&mut first).unwrap();
                let head = format!("HTTP/1.1 200 OK\r\n{date}Content-Length: {length}\r\nConnection: close\r\n\r\n");
                met.write_all(format!("{head}{document}").as_bytes()).unwrap();
            }
        });
        let (_, findings) = bench.asked(&bench.text().replace(&bench.endpoint, &format!("http://{address}")));
        serving.join().unwrap();
        assert!(any(&findings, what), "{what}: {findings:#?}");
    }
}
