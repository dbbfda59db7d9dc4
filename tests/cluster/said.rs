//! A hostile metadata service: the id, VMs, words and description of its only event contain escape sequences, markup
//! and paths.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

pub(crate) const ID: &str =
    "../E?#%2e\u{1b}[2J\r\n{\"level\":\"ERROR\"}\u{9b}31m<script>'\u{202e}\u{2028}$(reboot)`x`\"";
pub(crate) const STRANGER: &str = "vm\u{1b}]0;owned\u{7}\n\u{85}\u{feff}../../etc/passwd";

/// Starts the service and returns the service's address. Every request gets the same document, over a connection for
/// each request. The service ends with the test's process.
pub(crate) fn hostile_service() -> String {
    let event = json!({
        "EventId": ID, "EventStatus": "Scheduled", "EventType": "Re\u{9b}boot\n", "EventSource": "Us\u{1b}er\r",
        "ResourceType": "VirtualMachine", "Resources": ["db-0", STRANGER], "NotBefore": "",
        "Description": "told \u{1b}[31m\u{202e}\n<b>", "DurationInSeconds": -1,
    });
    let document = json!({ "DocumentIncarnation": 1, "Events": [event] });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let document = document.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = answer(stream.unwrap(), &document);
        }
    });
    address
}

fn answer(mut stream: TcpStream, document: &str) -> std::io::Result<()> {
    let mut head = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while head.read_line(&mut line)? > 2 {
        line.clear();
    }
    let length = document.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{document}")
}
