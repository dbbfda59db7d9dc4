//! Bounds the bytes of unread answers at each listener. If the budget is exhausted, the connection with the oldest
//! unread answer is closed; without such a connection, no answer is made.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Bytes of all answers.
const HELD: usize = 16 << 20;
/// Unread bytes of each connection beside the budget: small answers depend on no other connection.
const HELD_BY_EACH: usize = 16 << 10;
/// The time without reads after which a connection may be closed in favour of others.
const READS_WITHIN: Duration = Duration::from_secs(1);
/// The maximum wait of an answer for the budget.
const WAITS_AT_MOST: Duration = Duration::from_secs(5);
/// The maximum number of answers waiting for the budget; further answers are dropped, because each waiting answer uses
/// memory.
const WAIT_AT_ONCE: usize = 4;

/// The budget of one listener.
#[derive(Clone)]
pub struct AnswerBudget(Arc<Inner>);

struct Inner {
    books: Mutex<AnswerTable>,
    freed: Notify,
    waits: Semaphore,
}

struct AnswerTable {
    free: usize,
    next: u64,
    /// In the order of creation.
    held: BTreeMap<u64, HeldAnswer>,
}

struct HeldAnswer {
    bytes: usize,
    reader: PeerReader,
    /// Since when the answer is unread; `None` after the read.
    since: Option<Instant>,
}

/// The reading peer of one connection, for the handlers that answer on the connection.
#[derive(Clone, Default)]
pub struct PeerReader {
    unread: Arc<AtomicUsize>,
    gives_way: CancellationToken,
    refused: Arc<AtomicU32>,
}

impl PeerReader {
    /// Records that a call was refused because of its caller: the connection is read less often from now on.
    pub fn record_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of calls refused since the last query.
    pub(super) fn take_refused(&self) -> u32 {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Ends when the connection is to be closed.
    pub(super) fn evicted(&self) -> impl Future<Output = ()> + Send + 'static {
        self.gives_way.clone().cancelled_owned()
    }

    fn take(&self, bytes: usize) -> bool {
        let more = |unread: usize| unread.checked_add(bytes).filter(|unread| *unread <= HELD_BY_EACH);
        self.unread.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// Bytes of the budget, or of the reader's own allowance, until dropped.
pub(super) struct Hold {
    room: Arc<Inner>,
    reader: PeerReader,
    pub(super) bytes: usize,
    /// The key of the bytes in the budget.
    number: Option<u64>,
}

impl Hold {
    pub(super) fn is_read(&self) {
        self.note(None);
    }

    pub(super) fn is_handed_on(&self) {
        self.note(Some(Instant::now()));
    }

    fn note(&self, since: Option<Instant>) {
        if let Some(number) = self.number
            && let Some(entry) = self.room.books().held.get_mut(&number)
        {
            entry.since = since;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(number) = self.number else {
            self.reader.unread.fetch_sub(self.bytes, Ordering::Relaxed);
            return;
        };
        let mut books = self.room.books();
        if let Some(entry) = books.held.remove(&number) {
            books.free += entry.bytes;
        }
        drop(books);
        self.room.freed.notify_waiters();
    }
}

/// Bytes passed to the connection, which drops the bytes after the write.
pub(super) struct Unread {
    bytes: Bytes,
    hold: Arc<Hold>,
}

impl Unread {
    pub(super) fn handed_on(bytes: Bytes, hold: Arc<Hold>) -> Bytes {
        hold.is_handed_on();
        Bytes::from_owner(Self { bytes, hold })
    }
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.hold.is_read();
    }
}

impl Default for AnswerBudget {
    fn default() -> Self {
        let books = Mutex::new(AnswerTable { free: HELD, next: 0, held: BTreeMap::new() });
        Self(Arc::new(Inner { books, freed: Notify::new(), waits: Semaphore::new(WAIT_AT_ONCE) }))
    }
}

impl AnswerBudget {
    /// The bytes, counted in the budget until read; `None` if the budget is exhausted.
    pub async fn hold(&self, reader: &PeerReader, bytes: &[u8]) -> Option<Bytes> {
        let hold = self.reserve(reader, bytes.len()).await?;
        // A copy, because the original buffer may be twice as large.
        Some(Unread::handed_on(Bytes::copy_from_slice(bytes), Arc::new(hold)))
    }

    pub(super) async fn reserve(&self, reader: &PeerReader, bytes: usize) -> Option<Hold> {
        if let Some(hold) = self.take(reader, bytes) {
            return Some(hold);
        }
        let _waits = self.0.waits.try_acquire().ok()?;
        timeout(WAITS_AT_MOST, self.when_there_is_room(reader, bytes)).await.ok()
    }

    async fn when_there_is_room(&self, reader: &PeerReader, bytes: usize) -> Hold {
        loop {
            let mut freed = std::pin::pin!(self.0.freed.notified());
            freed.as_mut().enable();
            if let Some(hold) = self.take(reader, bytes) {
                return hold;
            }
            let look_again = self.0.books().close_slowest();
            tokio::select! {
                () = freed => {}
                () = sleep(look_again) => {}
            }
        }
    }

    fn take(&self, reader: &PeerReader, bytes: usize) -> Option<Hold> {
        let number = if reader.take(bytes) { None } else { Some(self.0.books().take(reader, bytes)?) };
        Some(Hold { room: self.0.clone(), reader: reader.clone(), bytes, number })
    }
}

impl Inner {
    fn books(&self) -> MutexGuard<'_, AnswerTable> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerTable {
    fn take(&mut self, reader: &PeerReader, bytes: usize) -> Option<u64> {
        // An answer larger than the budget takes the whole budget.
        let bytes = bytes.min(HELD);
        self.free = self.free.checked_sub(bytes)?;
        self.next += 1;
        self.held.insert(self.next, HeldAnswer { bytes, reader: reader.clone(), since: Some(Instant::now()) });
        Some(self.next)
    }

    /// Closes the slowest connection if overdue, and returns the time until the next connection may be due.
    fn close_slowest(&self) -> Duration {
        let still_there = |entry: &&HeldAnswer| entry.since.is_some() && !entry.reader.gives_way.is_cancelled();
        let slowest = self.held.values().filter(still_there).min_by_key(|entry| entry.since);
        let Some((slowest, since)) = slowest.and_then(|entry| Some((entry, entry.since?))) else {
            return READS_WITHIN;
        };
        let waited = since.elapsed();
        let left = READS_WITHIN.saturating_sub(waited);
        if left.is_zero() {
            slowest.reader.gives_way.cancel();
            return READS_WITHIN / 10;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: &[u8] = &[7; HELD / 2];

    #[tokio::test(start_paused = true)]
    async fn who_was_answered_first_and_does_not_read_gives_way() {
        let (room, readers) = (AnswerBudget::default(), [(); 3].map(|()| PeerReader::default()));
        let first = room.hold(&readers[0], HALF).await.expect("room");
        sleep(READS_WITHIN / 2).await;
        let second = room.hold(&readers[1], HALF).await.expect("room");
        let began = Instant::now();
        let (third, ()) = tokio::join!(room.hold(&readers[2], HALF), async {
            readers[0].evicted().await;
            drop(first);
        });
        assert_eq!(third.as_deref(), Some(HALF));
        assert!(began.elapsed() < READS_WITHIN, "the first has had its time");
        assert!(!readers[1].gives_way.is_cancelled() && !readers[2].gives_way.is_cancelled());
        drop((second, third));
        assert_eq!(room.0.books().free, HELD);
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_lets_go_an_answer_is_not_made_and_few_wait_for_it() {
        let (room, reader) = (AnswerBudget::default(), PeerReader::default());
        let held = room.hold(&reader, &[HALF, HALF].concat()).await.expect("room");
        let began = Instant::now();
        let asking = (0..20).map(|_| {
            let room = room.clone();
            tokio::spawn(async move { room.hold(&PeerReader::default(), HALF).await.is_none() })
        });
        for asked in asking.collect::<Vec<_>>() {
            assert!(asked.await.expect("no panic"));
        }
        assert!(began.elapsed() <= WAITS_AT_MOST + READS_WITHIN);
        // Small answers depend on no other connection.
        let small = room.hold(&PeerReader::default(), &[7; HELD_BY_EACH]).await;
        assert!(small.is_some());
        drop(held);
        assert!(room.hold(&PeerReader::default(), HALF).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_read_and_kept_for_later_is_no_reason_to_give_way() {
        let (room, reader) = (AnswerBudget::default(), PeerReader::default());
        let kept = Arc::new(room.reserve(&reader, HELD).await.expect("room"));
        drop(Unread::handed_on(Bytes::from_static(HALF), kept.clone()));
        assert!(room.hold(&PeerReader::default(), HALF).await.is_none());
        assert!(!reader.gives_way.is_cancelled());
    }

    #[tokio::test]
    async fn a_connection_leaves_little_unread_beside_the_others() {
        let (room, reader) = (AnswerBudget::default(), PeerReader::default());
        let small: Vec<_> =
            [room.hold(&reader, &[1; HELD_BY_EACH / 2]).await, room.hold(&reader, &[1; 9]).await].into();
        assert_eq!(room.0.books().free, HELD);
        let large = room.hold(&reader, &[1; HELD_BY_EACH]).await;
        assert_eq!(room.0.books().free, HELD - HELD_BY_EACH);
        drop((small, large));
        assert_eq!((room.0.books().free, reader.unread.load(Ordering::Relaxed)), (HELD, 0));
    }
}
