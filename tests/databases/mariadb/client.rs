//! A client of `MariaDB` with as much of the protocol as a writer needs, for an account without a password: a driver's
//! process would cost more than the measured switches.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::super::record::Row;
use super::super::trio::DatabaseClient;

/// Long passwords, a schema, protocol 4.1, secure connections, transactions, plugins.
const CAPABILITIES: u32 = 0x1 | 0x8 | 0x200 | 0x8000 | 0x2000 | 0x8_0000;
const QUERY: u8 = 3;

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(super) fn open(address: &str, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address.parse().unwrap(), patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        let mut connection = Self { stream: BufReader::new(stream) };
        connection.read()?;
        let head = [&CAPABILITIES.to_le_bytes()[..], &(1_u32 << 24).to_le_bytes(), &[45], &[0; 23]].concat();
        connection.send(1, &[&head[..], b"app\0\0app\0mysql_native_password\0"].concat())?;
        connection.read()?;
        Ok(connection)
    }

    /// The rows of the answer, as texts.
    pub(super) fn ask(&mut self, statement: &str) -> io::Result<Vec<Vec<String>>> {
        self.send(0, &[&[QUERY], statement.as_bytes()].concat())?;
        let columns = self.read()?[0];
        if columns == 0 {
            return Ok(Vec::new());
        }
        for _ in 0..=columns {
            self.read()?;
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.read()?;
            if packet[0] == 0xfe && packet.len() < 9 {
                return Ok(rows);
            }
            rows.push(fields(&packet));
        }
    }

    fn send(&mut self, number: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        let packet = [&length[..3], &[number], body].concat();
        self.stream.get_mut().write_all(&packet)
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut body)?;
        match body.first() {
            None => Err(io::ErrorKind::InvalidData.into()),
            Some(0xff) => Err(io::Error::other(String::from_utf8_lossy(&body).into_owned())),
            Some(_) => Ok(body),
        }
    }
}

impl DatabaseClient for Connection {
    fn write(&mut self, row: Row) -> io::Result<()> {
        self.ask(&format!("INSERT INTO records VALUES ({}, {})", row.client, row.number))?;
        Ok(())
    }
}

/// The fields of a row; no field is null or longer than 250 bytes.
fn fields(mut packet: &[u8]) -> Vec<String> {
    let mut fields = Vec::new();
    while let Some((length, rest)) = packet.split_first() {
        let (field, rest) = rest.split_at(usize::from(*length));
        fields.push(String::from_utf8_lossy(field).into_owned());
        packet = rest;
    }
    fields
}
