//! Several addresses of one replica: one is tried after the other, the next as soon as those before it failed or are slow,
//! and whoever answers first is taken.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

/// Each address is given this long.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// One that has not answered by then has another one tried beside it.
const SLOW_AFTER: Duration = Duration::from_millis(150);

/// # Errors
/// What each address failed of; where there is only one, its own error.
pub(super) async fn first<T, F>(addresses: &[SocketAddr], attempt: impl Fn(SocketAddr) -> F) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut left = addresses.iter();
    let mut under_way = FuturesUnordered::new();
    let mut failed: Vec<(SocketAddr, io::Error)> = Vec::new();
    loop {
        if let Some(&address) = left.next() {
            let attempt = &attempt;
            under_way.push(async move { (address, within(attempt(address)).await) });
        }
        let ended = match timeout(SLOW_AFTER, under_way.next()).await {
            Err(_) if !left.as_slice().is_empty() => continue,
            Err(_) => under_way.next().await,
            Ok(ended) => ended,
        };
        match ended {
            Some((_, Ok(reached))) => return Ok(reached),
            Some((address, Err(error))) => failed.push((address, error)),
            None => return Err(all(failed)),
        }
    }
}

async fn within<T>(attempt: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {ANSWER_WITHIN:?}"));
    timeout(ANSWER_WITHIN, attempt).await.map_err(late)?
}

fn all(mut failed: Vec<(SocketAddr, io::Error)>) -> io::Error {
    if failed.len() == 1 {
        return failed.remove(0).1;
    }
    let each: Vec<_> = failed.iter().map(|(address, error)| format!("{address}: {error}")).collect();
    io::Error::other(if each.is_empty() { "it has no address".into() } else { each.join("; ") })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 7420))
    }

    /// The last byte says what becomes of an attempt; tells who was tried.
    async fn tried(lasts: &[u8]) -> (io::Result<u8>, Vec<u8>) {
        let tried = Mutex::new(Vec::new());
        let addresses: Vec<_> = lasts.iter().map(|last| at(*last)).collect();
        let attempt = |address: SocketAddr| {
            let last = address.to_string().split(['.', ':']).nth(3).unwrap().parse::<u8>().unwrap();
            tried.lock().unwrap().push(last);
            async move {
                match last {
                    0..10 => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "refused")),
                    10..20 => std::future::pending().await,
                    20..30 => {
                        tokio::time::sleep(SLOW_AFTER * 5 / 2).await;
                        Ok(last)
                    }
                    _ => Ok(last),
                }
            }
        };
        let reached = first(&addresses, attempt).await;
        (reached, tried.into_inner().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn every_address_is_tried_until_one_answers() {
        for (lasts, reached, expected) in [
            (&[30, 31][..], 30, &[30][..]),
            (&[1, 31], 31, &[1, 31]),
            (&[11, 31], 31, &[11, 31]),
            (&[11, 1, 2, 12, 31], 31, &[11, 1, 2, 12, 31]),
            (&[21, 11, 1], 21, &[21, 11, 1]),
            (&[21], 21, &[21]),
        ] {
            let (first, tried) = tried(lasts).await;
            assert_eq!((first.unwrap(), tried.as_slice()), (reached, expected), "{lasts:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn when_none_answers_it_is_told_of_each() {
        let why = async |lasts: &[u8]| tried(lasts).await.0.unwrap_err().to_string();
        assert_eq!(why(&[1]).await, "refused");
        assert_eq!(why(&[11]).await, "no answer within 500ms");
        assert_eq!(why(&[11, 1]).await, "10.0.0.1:7420: refused; 10.0.0.11:7420: no answer within 500ms");
        assert_eq!(why(&[]).await, "it has no address");
    }
}
