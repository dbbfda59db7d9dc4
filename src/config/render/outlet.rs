//! The tables of what is told to other systems. Of what is secret the file that it stands in.

use super::{Lines, inline_table, list, path, quoted, span, text};
use crate::http_client::header::HeaderValue;
use crate::outlet::headers::Headers;
use crate::outlet::notices::receiver::{Address, Receiver};
use crate::outlet::traces::Collector;

pub(super) fn tracing_lines(collector: &Collector) -> Lines {
    let Collector { endpoint, headers, ca } = collector;
    let [written, files] = header_lines(headers);
    vec![("endpoint", text(endpoint)), written, files, ("ca", ca.as_deref().and_then(path))]
}

pub(super) fn receiver_lines(receiver: &Receiver) -> Lines {
    let Receiver { name, address, format, topics, blocked_after, secret_file, headers, ca } = receiver;
    let (key, address) = match address {
        Address::Written(url) => ("url", text(url)),
        Address::InFile(file) => ("url_file", path(file)),
    };
    let [written, files] = header_lines(headers);
    vec![
        ("name", text(name)),
        (key, address),
        ("format", text(format.as_word())),
        ("topics", list(topics.iter().map(quoted))),
        ("blocked_after", span(*blocked_after)),
        ("secret_file", secret_file.as_deref().and_then(path)),
        written,
        files,
        ("ca", ca.as_deref().and_then(path)),
    ]
}

fn header_lines(headers: &Headers) -> [(&'static str, Option<String>); 2] {
    let Headers { written, secret } = headers;
    let literal = |value: &HeaderValue| quoted(String::from_utf8_lossy(value.as_bytes()));
    let written = written.iter().map(|(name, value)| format!("{} = {}", quoted(name), literal(value)));
    let files = secret.iter().map(|(name, file)| format!("{} = {}", quoted(name), quoted(file.display())));
    [("headers", inline_table(written)), ("header_files", inline_table(files))]
}
