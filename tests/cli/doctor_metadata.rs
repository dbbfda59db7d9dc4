//! `allclear doctor` at an endpoint that returns no documents.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use super::doctor::{Bench, any};
use super::free_addresses;

#[test]
fn a_metadata_endpoint_that_is_not_one_is_told() {
    let bench = Bench::new();
    let [(_held, nobody)] = free_addresses();
    bench.fails(&bench.text().replace(&bench.endpoint, &format!("http://{nobody}")), "metadata", "refuses connections");
    for (status, advice) in [("400 Bad Request", "shows more"), ("403 Forbidden", "`curl` proves nothing")] {
        let html = TcpListener::bind("127.0.0.3:0").unwrap();
        let text = bench.text().replace(&bench.endpoint, &format!("http://{}", html.local_addr().unwrap()));
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        let serving = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut met, _) = html.accept().unwrap();
                let mut first = String::new();
                BufReader::new(met.try_clone().unwrap()).read_line(&mut first).unwrap();
                met.write_all(answer.as_bytes()).unwrap();
            }
        });
        let (code, findings) = bench.asked(&text);
        serving.join().unwrap();
        let failed = findings.iter().find(|finding| finding["verdict"] == "fail").unwrap();
        assert!(code == Some(1) && failed["what"].as_str().unwrap().contains(&status[..3]), "{findings:#?}");
        assert!(failed["advice"].as_str().unwrap().contains(advice), "{failed:#?}");
    }
    let unnamed = bench.text().replace(&bench.endpoint, &format!("http://{nobody}")).replace("name = \"db-0\"\n", "");
    let (code, findings) = bench.asked(&unnamed);
    assert!(code == Some(1) && any(&findings, "the name of this VM is not known"), "{findings:#?}");
    // No event would ever name this replica.
    bench.fails(&bench.alone().replace("\"db-0\"", "\"db-7\""), "name", "calls this VM db-0");
}
