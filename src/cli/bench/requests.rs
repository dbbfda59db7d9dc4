//! The status, asked for by many at once, at a pace.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::figure::{Figure, ms};
use crate::cli::say;
use crate::cli::stage::Stage;

/// Fewer than wait for their turn (`ops::bounds`).
const PER_SECOND: u32 = 2000;
/// As a page, a scraper and many scripts would have.
const CONNECTIONS: u32 = 16;

pub(super) async fn measure(stage: &Stage, seconds: u32) -> anyhow::Result<Vec<Figure>> {
    say(format_args!("the status is asked for {PER_SECOND} times a second for {seconds} s"));
    let replica = &stage.replicas[0];
    let address = replica.status.to_string();
    let body = ask(&mut dial(&address).await?, &address).await?;
    let spans = paced(&address, seconds).await?;
    let floors = paced(&bare(body).await?, seconds.min(5)).await?;
    let floor = "a server that sends the same bytes";
    Ok(vec![Figure::of("status, at 2,000 requests per second", "ms", spans, floors, floor)])
}

/// How long each answer took. Who asks waits for the moment, not for the answer before it, as far as its connection is free.
async fn paced(address: &str, seconds: u32) -> anyhow::Result<Vec<f64>> {
    let every = Duration::from_secs(1) * CONNECTIONS / PER_SECOND;
    let mut asking = JoinSet::new();
    for place in 0..CONNECTIONS {
        let address = address.to_owned();
        asking.spawn(async move {
            let mut connection = dial(&address).await?;
            let mut turns = interval_at(Instant::now() + every * place / CONNECTIONS, every);
            turns.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut spans = Vec::new();
            for _ in 0..seconds * PER_SECOND / CONNECTIONS {
                // One that is late waited, and that counts.
                let due = turns.tick().await;
                ask(&mut connection, &address).await?;
                spans.push(ms(due.elapsed()));
            }
            anyhow::Ok(spans)
        });
    }
    let mut all = Vec::new();
    while let Some(spans) = asking.join_next().await {
        all.extend(spans??);
    }
    Ok(all)
}

type Connection = BufReader<TcpStream>;

async fn dial(address: &str) -> anyhow::Result<Connection> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

/// One request and its whole answer.
async fn ask(connection: &mut Connection, host: &str) -> anyhow::Result<Vec<u8>> {
    let request = format!("GET /v1/status HTTP/1.1\r\nHost: {host}\r\n\r\n");
    connection.get_mut().write_all(request.as_bytes()).await?;
    let (mut first, mut length) = (String::new(), None);
    connection.read_line(&mut first).await?;
    ensure!(first.starts_with("HTTP/1.1 200 "), "the status was answered with {first:?}");
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length.context("an answer does not say how long it is")?];
    connection.read_exact(&mut body).await?;
    Ok(body)
}

/// Answers whatever it is asked with these bytes, until the runtime ends.
async fn bare(body: Vec<u8>) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let answer: Arc<[u8]> = [head.into_bytes(), body].concat().into();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                    if line == "\r\n" {
                        stream.get_mut().write_all(&answer).await?;
                    }
                    line.clear();
                }
                std::io::Result::Ok(())
            });
        }
    });
    Ok(address)
}
