//! A client of etcd's JSON gateway over one lasting connection.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::record::Row;
use super::super::trio::DatabaseClient;

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(super) fn open(address: &str, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address.parse().unwrap(), patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(super) fn ask(&mut self, path: &str, body: &Value) -> io::Result<Value> {
        let body = body.to_string();
        let head = format!("POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {}\r\n\r\n", body.len());
        self.stream.get_mut().write_all((head + &body).as_bytes())?;
        let status = self.line()?;
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            length = line.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().ok());
        }
        let body = match length {
            Some(length) => self.take(length)?,
            None => self.chunks()?,
        };
        if !status.contains(" 200 ") {
            return Err(io::Error::other(String::from_utf8_lossy(&body).into_owned()));
        }
        serde_json::from_slice(&body).map_err(io::Error::other)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    /// A long answer comes in pieces.
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            body.extend(self.take(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }
}

impl DatabaseClient for Connection {
    fn write(&mut self, row: Row) -> io::Result<()> {
        self.ask("kv/put", &json!({ "key": key(row), "value": "" }))?;
        Ok(())
    }
}

/// In etcd's JSON a key is base64. Letters and digits, four at a time, are base64 already.
pub(super) fn key(row: Row) -> String {
    format!("rows{:04}{:016}", row.client, row.number)
}

pub(super) fn row(key: &str) -> Row {
    Row { client: key[4..8].parse().unwrap(), number: key[8..].parse().unwrap() }
}
