//! Answers of another program at the address of a Redis: the reason quotes the answer.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use super::super::hook::{BLOCKED, Hook};
use super::super::trio::{find, vms_of};
use super::Redis;

/// The answer sent to each client on connection, before the client is disconnected, and the reason's text. In protected
/// mode and with too many clients a server answers before the first request.
const ANSWERS: [(&str, &str); 8] = [
    (
        "-DENIED Redis is running in protected mode because\r\n",
        "says: DENIED Redis is running in protected mode because",
    ),
    ("-ERR max number of clients reached\r\n", "says: ERR max number of clients reached"),
    ("-LOADING Redis is loading the dataset in memory\r\n", "says: LOADING Redis is loading the dataset in memory"),
    ("-BUSY Redis is busy running a script.\r\n", "says: BUSY Redis is busy running a script."),
    ("-MISCONF Redis is configured to save\r\n", "says: MISCONF Redis is configured to save"),
    ("HTTP/1.1 400 Bad Request\r\n", "this is not the protocol of Redis: b'HTTP/1.1 400 Bad Request"),
    ("*1\r\n$300\r\nmaster", "closed the connection"),
    ("", "closed the connection"),
];

#[test]
fn whatever_a_server_says_instead_of_its_role_is_the_reason() {
    if find("python3").is_none() {
        println!("SKIPPED: there is no python3");
        return;
    }
    let trio = vms_of::<Redis>();
    for (answer, reason) in ANSWERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                let _ = stream.read(&mut [0; 64]);
            }
        });
        let ended = Hook::run::<Redis>(&trio, 0, "ready", &[("MEMBERS", &format!("db-0={address}"))]);
        assert!(ended.status == BLOCKED && ended.said.contains(reason), "{answer:?}: {ended:?}");
    }
}
