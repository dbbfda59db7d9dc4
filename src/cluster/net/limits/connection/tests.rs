//! The limits of accepted connections.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::timeout;

use super::*;
use crate::net::limits::{ClientKey, ConnectionLimit, EvictingLimit};

const WITHIN: Duration = Duration::from_secs(10);

fn measured_by(pace: RateLimiter) -> ReadRate {
    ReadRate::Bytes(Arc::new(Mutex::new(pace)))
}

/// Both sides of an accepted connection.
fn admitted(
    longest_question: Option<usize>,
    pace: Option<RateLimiter>,
) -> Option<(BoundedConnection<DuplexStream>, DuplexStream, ConnectionLimit)> {
    let places = ConnectionLimit::in_all(1);
    let (stream, other) = duplex(64);
    let measure = measured_by(pace.unwrap_or_else(|| RateLimiter::new(1 << 20, 1 << 20)));
    let footing = places.acquire(ClientKey::Anybody)?.into();
    let manners = ConnectionBounds { footing, measure, reads_within: WITHIN, longest_question };
    Some((BoundedConnection::new(stream, b"begun ".to_vec(), manners), other, places))
}

#[tokio::test(start_paused = true)]
async fn what_was_read_at_the_door_is_read_first_and_the_place_is_free_at_the_end() {
    let (mut inside, mut other, places) = admitted(None, None).expect("a place");
    other.write_all(b"and goes on").await.expect("room");
    drop(other);
    let mut all = String::new();
    inside.read_to_string(&mut all).await.expect("all of it");
    assert_eq!(all, "begun and goes on");
    assert!(places.acquire(ClientKey::Anybody).is_none());
    drop(inside);
    assert!(places.acquire(ClientKey::Anybody).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_peer_that_has_left_are_read_after_a_failed_write() {
    let (mut inside, mut other, _places) = admitted(None, None).expect("a place");
    other.write_all(b"the last words").await.expect("room");
    drop(other);
    for _ in 0..3 {
        inside.write_all(b"an answer to nobody").await.expect("reading ends the connection");
    }
    let mut all = String::new();
    inside.read_to_string(&mut all).await.expect("all of it");
    assert_eq!(all, "begun the last words");
    // Where a request is read only after the answer, nothing is left to read.
    let (mut inside, other, _places) = admitted(Some(32), None).expect("a place");
    drop(other);
    let written = inside.write_all(b"answer").await;
    assert_eq!(written.map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_is_not_heard_and_is_ended_after_a_while() {
    let (mut inside, mut other, _places) = admitted(None, None).expect("a place");
    inside.read_exact(&mut [0; 6]).await.expect("what was begun");
    let began = Instant::now();
    let mut written = Box::pin(async {
        inside.write_all(&[0; 64]).await?;
        inside.write_all(&[0; 64]).await
    });
    assert!(timeout(WITHIN / 2, &mut written).await.is_err());
    drop(written);
    other.write_all(b"?").await.expect("room");
    assert!(timeout(WITHIN / 4, inside.read_u8()).await.is_err(), "it was heard");
    let ended = inside.read_u8().await;
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    assert!(began.elapsed() <= WITHIN * 2);
}

#[tokio::test(start_paused = true)]
async fn who_reads_again_is_heard_again_and_who_has_nothing_to_read_may_be_silent() {
    let (mut inside, mut other, _places) = admitted(None, None).expect("a place");
    inside.read_exact(&mut [0; 6]).await.expect("what was begun");
    assert!(timeout(WITHIN * 10, inside.read_u8()).await.is_err());
    let (mut hears, mut says) = tokio::io::split(inside);
    let saying = tokio::spawn(async move { says.write_all(&[0; 200]).await });
    tokio::time::sleep(WITHIN / 2).await;
    other.write_all(b"?").await.expect("room");
    let hearing = tokio::spawn(async move { hears.read_u8().await });
    other.read_exact(&mut [0; 200]).await.expect("all of it");
    assert!(saying.await.expect("no panic").is_ok());
    assert_eq!(hearing.await.expect("no panic").ok(), Some(b'?'));
}

#[tokio::test(start_paused = true)]
async fn where_questions_are_answered_one_by_one_silence_and_endless_questions_end_it() {
    let (mut silent, _other, _places) = admitted(Some(32), None).expect("a place");
    silent.read_exact(&mut [0; 6]).await.expect("what was begun");
    let ended = silent.read_u8().await;
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));

    let (mut inside, mut other, _places) = admitted(Some(32), None).expect("a place");
    inside.read_exact(&mut [0; 6]).await.expect("what was begun");
    other.write_all(&[0; 32]).await.expect("room");
    inside.read_exact(&mut [0; 32]).await.expect("a question");
    inside.write_all(b"answer").await.expect("room");
    other.write_all(&[0; 33]).await.expect("room");
    let ended = inside.read_exact(&mut [0; 33]).await;
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
}

#[tokio::test(start_paused = true)]
async fn who_talks_too_fast_is_heard_as_fast_as_it_may_talk() {
    let (mut inside, mut other, _places) = admitted(None, Some(RateLimiter::new(10, 10))).expect("a place");
    inside.read_exact(&mut [0; 6]).await.expect("what was begun");
    let talking = tokio::spawn(async move { other.write_all(&[0; 640]).await.map(|()| other) });
    let began = Instant::now();
    inside.read_exact(&mut [0; 640]).await.expect("all of it");
    assert!(talking.await.is_ok());
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(50) && took <= Duration::from_secs(63), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_had_to_give_way_is_ended() {
    let mut crowd = EvictingLimit::new(1);
    let (stream, _other) = duplex(64);
    let (stay, _) = crowd.acquire(ClientKey::User(1));
    let measure = measured_by(RateLimiter::new(1 << 20, 1 << 20));
    let manners = ConnectionBounds { footing: stay.into(), measure, reads_within: WITHIN, longest_question: None };
    let mut inside = BoundedConnection::new(stream, Vec::new(), manners);
    assert!(timeout(WITHIN, inside.read_u8()).await.is_err());
    let _newcomer = crowd.acquire(ClientKey::User(2));
    let ended = inside.read_u8().await;
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionAborted));
}

#[tokio::test(start_paused = true)]
async fn frames_that_ask_for_nothing_are_heard_as_fast_as_they_may_come() {
    let places = ConnectionLimit::in_all(1);
    let (stream, mut other) = duplex(64);
    let footing = places.acquire(ClientKey::Anybody).expect("a place").into();
    let measure = ReadRate::Frames(Frames::after(0));
    let mut inside = BoundedConnection::new(
        stream,
        Vec::new(),
        ConnectionBounds { footing, measure, reads_within: WITHIN, longest_question: None },
    );
    let pings: Vec<u8> = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(1_000);
    let (count, began) = (pings.len(), Instant::now());
    let talking = tokio::spawn(async move { other.write_all(&pings).await.map(|()| other) });
    inside.read_exact(&mut vec![0; count]).await.expect("all of it");
    assert!(talking.await.is_ok());
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(11) && took <= Duration::from_secs(13), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_for_who_it_is_is_heard_less_often() {
    let (mut inside, mut other, _places) = admitted(None, None).expect("a place");
    inside.read_exact(&mut [0; 6]).await.expect("what was begun");
    let reader = inside.reader();
    let began = Instant::now();
    for calls in [1, 3] {
        for _ in 0..calls {
            reader.record_refusal();
        }
        other.write_all(b"?").await.expect("room");
        inside.read_u8().await.expect("a call");
    }
    assert_eq!(began.elapsed(), UNHEARD_AFTER_REFUSAL * 4);
    for _ in 0..100_000 {
        reader.record_refusal();
    }
    let began = Instant::now();
    other.write_all(b"??").await.expect("room");
    inside.read_exact(&mut [0; 2]).await.expect("calls");
    assert_eq!(began.elapsed(), WAITS_AT_MOST, "for good, or for nothing");
}
