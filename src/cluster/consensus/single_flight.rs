//! Single flight: concurrent callers share one answer.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// A question under way at most once. Callers that arrive meanwhile share the next answer, requested only after all of
/// them had arrived.
pub(crate) struct SingleFlight<T> {
    asked: AtomicU64,
    /// The last answer, and the number of questions until then.
    last: Mutex<Option<(u64, T)>>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self { asked: AtomicU64::new(0), last: Mutex::new(None) }
    }
}

impl<T: Clone> SingleFlight<T> {
    /// An answer to a question asked after this call.
    pub(crate) async fn get(&self, question: impl AsyncFnOnce() -> T) -> T {
        let before = self.asked.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some((_, answer)) = last.as_ref().filter(|(number, _)| *number > before) {
            return answer.clone();
        }
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = question().await;
        *last = Some((number, answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn who_comes_while_it_is_asked_shares_the_next_answer() {
        let (shared, asked, gate) =
            (Arc::new(SingleFlight::default()), Arc::new(AtomicUsize::new(0)), Semaphore::new(0));
        let gate = Arc::new(gate);
        let ask = || {
            let (shared, asked, gate) = (shared.clone(), asked.clone(), gate.clone());
            async move {
                let question = async || {
                    let number = asked.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                    number
                };
                shared.get(question).await
            }
        };
        let mut first = JoinSet::new();
        first.spawn(ask());
        while asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // A question asked before the arrival of these callers is no answer for them.
        let mut later = JoinSet::new();
        for _ in 0..100 {
            later.spawn(ask());
        }
        tokio::task::yield_now().await;
        gate.add_permits(2);
        assert_eq!(first.join_all().await, [0]);
        assert_eq!(later.join_all().await, [1; 100]);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_no_answer() {
        let shared = SingleFlight::default();
        tokio::select! {
            biased;
            _ = shared.get(async || std::future::pending::<u8>().await) => unreachable!(),
            () = std::future::ready(()) => {}
        }
        assert_eq!(shared.get(async || 1).await, 1);
    }
}
