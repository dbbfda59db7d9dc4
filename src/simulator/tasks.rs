//! Runs the tasks of all simulated replicas in one thread, in an order that depends on nothing but the world.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A task, told apart from later ones in the same place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TaskId {
    place: usize,
    turn: u64,
}

type Work = Pin<Box<dyn Future<Output = ()>>>;

struct Slot {
    turn: u64,
    owner: usize,
    is_ready: bool,
    /// Taken out while it runs.
    work: Option<Work>,
    is_used: bool,
}

#[derive(Default)]
pub(super) struct Tasks {
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<usize>>,
    ready: RefCell<VecDeque<TaskId>>,
    /// Ready, and of somebody who is paused.
    held: RefCell<Vec<(usize, TaskId)>>,
    current: Cell<Option<TaskId>>,
    turns: Cell<u64>,
}

impl Tasks {
    pub(super) fn spawn(&self, owner: usize, work: impl Future<Output = ()> + 'static) {
        let turn = self.turns.get() + 1;
        self.turns.set(turn);
        let slot = Slot { turn, owner, is_ready: false, work: Some(Box::pin(work)), is_used: true };
        let free = self.free.borrow_mut().pop();
        let mut slots = self.slots.borrow_mut();
        let place = if let Some(place) = free {
            slots[place] = slot;
            place
        } else {
            slots.push(slot);
            slots.len() - 1
        };
        drop(slots);
        self.wake(TaskId { place, turn });
    }

    /// The task that runs now.
    pub(super) fn current(&self) -> Option<TaskId> {
        self.current.get()
    }

    pub(super) fn wake(&self, id: TaskId) {
        let mut slots = self.slots.borrow_mut();
        if let Some(slot) = slots.get_mut(id.place)
            && slot.turn == id.turn
            && slot.is_used
            && !slot.is_ready
        {
            slot.is_ready = true;
            self.ready.borrow_mut().push_back(id);
        }
    }

    /// Runs until nothing is ready but what belongs to somebody who is paused.
    pub(super) fn run(&self, is_paused: impl Fn(usize) -> bool) {
        loop {
            let next = self.ready.borrow_mut().pop_front();
            let Some(id) = next else { return };
            let work = {
                let mut slots = self.slots.borrow_mut();
                let slot = &mut slots[id.place];
                if slot.turn != id.turn || !slot.is_used {
                    continue;
                }
                if is_paused(slot.owner) {
                    self.held.borrow_mut().push((slot.owner, id));
                    continue;
                }
                slot.is_ready = false;
                slot.work.take()
            };
            let Some(mut work) = work else { continue };
            self.current.set(Some(id));
            let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            self.current.set(None);
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[id.place];
            // Its owner may have crashed by what it did.
            if slot.turn != id.turn || !slot.is_used {
                drop(slots);
                continue;
            }
            if polled.is_pending() {
                slot.work = Some(work);
            } else {
                slot.is_used = false;
                self.free.borrow_mut().push(id.place);
            }
        }
    }

    /// Whoever was paused goes on.
    pub(super) fn resume(&self, owner: usize) {
        let mut held = self.held.borrow_mut();
        let resumed = held.iter().filter(|(whose, _)| *whose == owner).map(|(_, id)| *id);
        self.ready.borrow_mut().extend(resumed);
        held.retain(|(whose, _)| *whose != owner);
    }

    /// All that somebody was doing ends where it is.
    pub(super) fn end(&self, owner: usize) {
        let mut ended = Vec::new();
        for (place, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            if slot.owner == owner && slot.is_used {
                slot.is_used = false;
                ended.extend(slot.work.take());
                self.free.borrow_mut().push(place);
            }
        }
        self.held.borrow_mut().retain(|(whose, _)| *whose != owner);
    }
}

/// One value that somebody waits for.
pub(super) struct Answer<T>(Rc<Place<T>>);

struct Place<T> {
    value: RefCell<Option<T>>,
    waiter: Cell<Option<TaskId>>,
}

impl<T> Clone for Answer<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Answer<T> {
    pub(super) fn new() -> Self {
        Self(Rc::new(Place { value: RefCell::new(None), waiter: Cell::new(None) }))
    }

    /// The first one counts.
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

/// Something that changes from time to time.
#[derive(Default)]
pub(super) struct Signal {
    version: Cell<u64>,
    waiters: RefCell<Vec<TaskId>>,
}

impl Signal {
    pub(super) fn version(&self) -> u64 {
        self.version.get()
    }

    pub(super) fn tell(&self, tasks: &Tasks) {
        self.version.set(self.version.get() + 1);
        for waiter in self.waiters.take() {
            tasks.wake(waiter);
        }
    }

    /// Returns when it has changed since that version.
    pub(super) async fn changed(&self, tasks: &Tasks, since: u64) {
        poll_fn(|_| {
            if self.version.get() != since {
                return Poll::Ready(());
            }
            if let Some(current) = tasks.current() {
                let mut waiters = self.waiters.borrow_mut();
                if !waiters.contains(&current) {
                    waiters.push(current);
                }
            }
            Poll::Pending
        })
        .await;
    }
}

/// What comes first; the first of two that come together.
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
