//! A client of PostgreSQL with the part of the protocol, version 3, that a writer needs: the process of a real driver
//! would cost more than the measured switches.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::testbed::DatabaseClient;
use crate::testbed::record::Row;

/// Maximum length of a message, far more than a row has.
const LONGEST_MESSAGE: u32 = 1 << 20;

pub struct PostgresConnection {
    stream: BufReader<TcpStream>,
    pub is_standby: bool,
}

impl PostgresConnection {
    pub fn open(address: &str, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address.parse().map_err(io::Error::other)?, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        let mut connection = Self { stream: BufReader::new(stream), is_standby: false };
        connection.send(None, b"\0\x03\0\0user\0postgres\0database\0postgres\0\0")?;
        connection.answer()?;
        Ok(connection)
    }

    /// The rows of the answer, as texts.
    pub fn ask(&mut self, statement: &str) -> io::Result<Vec<Vec<String>>> {
        self.send(Some(b'Q'), format!("{statement}\0").as_bytes())?;
        self.answer()
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?.to_be_bytes();
        let message = [kind.as_slice(), &length, body].concat();
        self.stream.get_mut().write_all(&message)
    }

    /// Reads until the server is ready for more.
    fn answer(&mut self) -> io::Result<Vec<Vec<String>>> {
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head)?;
            // The length counts itself.
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]).saturating_sub(4);
            if length > LONGEST_MESSAGE {
                return Err(io::Error::other(format!("a message of {length} bytes is none of this server's")));
            }
            let mut body = vec![0; length as usize];
            self.stream.read_exact(&mut body)?;
            match head[0] {
                b'Z' => return error.map_or(Ok(rows), Err),
                b'D' => rows.push(fields(&body)),
                b'S' if body.starts_with(b"in_hot_standby\0") => self.is_standby = body.ends_with(b"\0on\0"),
                b'E' => error = Some(io::Error::other(String::from_utf8_lossy(&body).replace('\0', " "))),
                _ => {}
            }
        }
    }
}

impl DatabaseClient for PostgresConnection {
    fn write(&mut self, row: Row) -> io::Result<()> {
        self.ask(&format!("insert into rows values ({}, {})", row.client, row.number))?;
        Ok(())
    }
}

/// The fields of one row, without nulls.
fn fields(body: &[u8]) -> Vec<String> {
    let mut fields = Vec::new();
    let mut body = body.get(2..).unwrap_or_default();
    while let Some((length, rest)) = body.split_first_chunk() {
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (field, rest) = rest.split_at(length.min(rest.len()));
        fields.push(String::from_utf8_lossy(field).into_owned());
        body = rest;
    }
    fields
}
