//! Runs the tasks of all simulated replicas in one thread, in an order that depends on nothing but the world.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Ordered by the start of the task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TaskId(u64);

type Work = Pin<Box<dyn Future<Output = ()>>>;

struct SpawnedTask {
    owner: usize,
    is_ready: bool,
    /// Taken out while the task runs.
    work: Option<Work>,
}

#[derive(Default)]
pub(super) struct Tasks {
    all: RefCell<BTreeMap<TaskId, SpawnedTask>>,
    ready: RefCell<VecDeque<TaskId>>,
    /// Ready tasks of paused replicas.
    held: RefCell<Vec<TaskId>>,
    current: Cell<Option<TaskId>>,
    begun: Cell<u64>,
}

impl Tasks {
    pub(super) fn spawn(&self, owner: usize, work: impl Future<Output = ()> + 'static) {
        let id = TaskId(self.begun.get());
        self.begun.set(id.0 + 1);
        self.all.borrow_mut().insert(id, SpawnedTask { owner, is_ready: false, work: Some(Box::pin(work)) });
        self.wake(id);
    }

    /// The task that runs now.
    pub(super) fn current(&self) -> Option<TaskId> {
        self.current.get()
    }

    pub(super) fn wake(&self, id: TaskId) {
        if let Some(task) = self.all.borrow_mut().get_mut(&id).filter(|task| !task.is_ready) {
            task.is_ready = true;
            self.ready.borrow_mut().push_back(id);
        }
    }

    /// Runs until only tasks of paused replicas are ready.
    pub(super) fn run(&self, is_paused: impl Fn(usize) -> bool) {
        loop {
            let next = self.ready.borrow_mut().pop_front();
            let Some(id) = next else { return };
            let work = {
                let mut all = self.all.borrow_mut();
                let Some(task) = all.get_mut(&id) else { continue };
                if is_paused(task.owner) {
                    self.held.borrow_mut().push(id);
                    continue;
                }
                task.is_ready = false;
                task.work.take()
            };
            let Some(mut work) = work else { continue };
            self.current.set(Some(id));
            let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            self.current.set(None);
            if polled.is_ready() {
                self.all.borrow_mut().remove(&id);
            } else if let Some(task) = self.all.borrow_mut().get_mut(&id) {
                // Skipped if the task has crashed its owner.
                task.work = Some(work);
            }
        }
    }

    /// A paused replica continues; tasks of other paused replicas are held again.
    pub(super) fn resume(&self) {
        self.ready.borrow_mut().extend(self.held.take());
    }

    /// All tasks of the owner end where they are.
    pub(super) fn end(&self, owner: usize) {
        let ended: Vec<_> = self.all.borrow_mut().extract_if(.., |_, task| task.owner == owner).collect();
        drop(ended);
    }
}

/// A single value with one waiter.
pub(super) struct Oneshot<T>(Rc<OneshotSlot<T>>);

struct OneshotSlot<T> {
    value: RefCell<Option<T>>,
    waiter: Cell<Option<TaskId>>,
}

impl<T> Clone for Oneshot<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Oneshot<T> {
    pub(super) fn new() -> Self {
        Self(Rc::new(OneshotSlot { value: RefCell::new(None), waiter: Cell::new(None) }))
    }

    /// The first value counts.
    pub(super) fn give(&self, tasks: &Tasks, value: T) {
        self.0.value.borrow_mut().get_or_insert(value);
        if let Some(waiter) = self.0.waiter.take() {
            tasks.wake(waiter);
        }
    }

    pub(super) async fn get(&self, tasks: &Tasks) -> T {
        poll_fn(|_| {
            if let Some(value) = self.0.value.borrow_mut().take() {
                return Poll::Ready(value);
            }
            self.0.waiter.set(tasks.current());
            Poll::Pending
        })
        .await
    }
}

/// A counter of changes, with its waiters.
#[derive(Default)]
pub(super) struct Signal {
    version: Cell<u64>,
    waiters: RefCell<BTreeSet<TaskId>>,
}

impl Signal {
    pub(super) fn tell(&self, tasks: &Tasks) {
        self.version.set(self.version.get() + 1);
        for waiter in self.waiters.take() {
            tasks.wake(waiter);
        }
    }
}

/// Signals with their versions at creation: every later notification is a change.
pub(super) struct SignalChanges<'a, const N: usize>([(&'a Signal, u64); N]);

impl<'a, const N: usize> SignalChanges<'a, N> {
    pub(super) fn of(signals: [&'a Signal; N]) -> Self {
        Self(signals.map(|signal| (signal, signal.version.get())))
    }

    /// The signals with these versions.
    pub(super) fn since(signals: [&'a Signal; N], versions: [u64; N]) -> Self {
        Self(std::array::from_fn(|place| (signals[place], versions[place])))
    }

    pub(super) fn versions(&self) -> [u64; N] {
        self.0.map(|(_, version)| version)
    }

    pub(super) async fn come(&self, tasks: &Tasks) {
        poll_fn(|_| {
            if self.0.iter().any(|(signal, since)| signal.version.get() != *since) {
                return Poll::Ready(());
            }
            for (signal, _) in &self.0 {
                signal.waiters.borrow_mut().extend(tasks.current());
            }
            Poll::Pending
        })
        .await;
    }
}

/// The result of the earlier future; of the first future if both are ready.
pub(super) async fn first<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> Result<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        if let Poll::Ready(found) = one.as_mut().poll(context) {
            return Poll::Ready(Ok(found));
        }
        other.as_mut().poll(context).map(Err)
    })
    .await
}
