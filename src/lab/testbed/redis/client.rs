//! A client of Redis or Sentinel with the part of the protocol that a writer needs.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::testbed::DatabaseClient;
use crate::testbed::record::Row;

/// Maximum length of a text, far more than a row has.
const LONGEST_TEXT: usize = 1 << 20;

pub struct RedisConnection {
    stream: BufReader<TcpStream>,
}

impl RedisConnection {
    pub fn open(address: &str, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address.parse().map_err(io::Error::other)?, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// The texts and numbers of the answer in their order, at any nesting.
    pub fn ask(&mut self, words: &[&str]) -> io::Result<Vec<String>> {
        let parts: Vec<_> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        let command = format!("*{}\r\n{}", words.len(), parts.concat());
        self.stream.get_mut().write_all(command.as_bytes())?;
        let mut told = Vec::new();
        self.answer(&mut told)?;
        Ok(told)
    }

    fn answer(&mut self, told: &mut Vec<String>) -> io::Result<()> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let Some((kind, rest)) = line.trim_end().split_at_checked(1) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        match kind {
            "-" => return Err(io::Error::other(rest.to_owned())),
            "$" if rest != "-1" => {
                let length = rest.parse::<usize>().map_err(io::Error::other)?;
                if length > LONGEST_TEXT {
                    return Err(io::Error::other(format!("a text of {length} bytes is none of this server's")));
                }
                let mut text = vec![0; length + 2];
                self.stream.read_exact(&mut text)?;
                told.push(String::from_utf8_lossy(&text).trim_end().to_owned());
            }
            "*" => {
                for _ in 0..rest.parse::<i64>().map_err(io::Error::other)? {
                    self.answer(told)?;
                }
            }
            _ => told.push(rest.to_owned()),
        }
        Ok(())
    }
}

impl DatabaseClient for RedisConnection {
    fn write(&mut self, row: Row) -> io::Result<()> {
        self.ask(&["RPUSH", "rows", &format!("{}:{}", row.client, row.number)])?;
        Ok(())
    }
}
