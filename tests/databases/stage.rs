//! An event as experienced by users: clients which write, a cloud which announces, and a VM which is taken.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use allclear::wire::pb::allclear::operator::v1::{Event, Hook};
use serde_json::json;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::cluster::Cluster;
use super::record::{WriteRecord, Wrong};
use super::trio::{System, ThreeNodeBed, VMS, tables, until, vms_of};
use super::writers::Writers;

/// The platform's action on a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing on the VM runs for a while.
    Freeze,
    /// Everything on the VM is killed, and started again.
    Reboot,
    /// As `Reboot`, and the data of the VM's server is gone.
    Redeploy,
    /// As `Reboot`, with a notice of 30 s.
    Preempt,
    /// The VM is deleted.
    Terminate,
}

/// The cost of an event.
pub(crate) struct Cost {
    /// The longest time without an acknowledgment to any client.
    pub(crate) gap: Duration,
    /// The start of `gap`.
    pub(crate) since: SystemTime,
    /// The longest gap of a single client.
    pub(crate) worst: Duration,
    pub(crate) acknowledged: usize,
    /// Writes that ended with an error.
    pub(crate) errors: usize,
    /// Acknowledged writes which are lost.
    pub(crate) lost: usize,
}

/// Clients which write without pause leave no capacity for many stages.
static ROOM: Semaphore = Semaphore::const_new(2);

/// The servers of a system, with a replica beside each server where events are coordinated.
pub(crate) struct Stage<S: System> {
    /// Ends before the servers do.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) trio: Arc<ThreeNodeBed>,
    system: PhantomData<S>,
    _room: SemaphorePermit<'static>,
}

impl<S: System> Stage<S> {
    /// Servers alone.
    pub(crate) async fn bare() -> Self {
        let room = ROOM.acquire().await.unwrap();
        let trio = Arc::new(vms_of::<S>());
        S::found(&trio);
        Self { cluster: None, trio, system: PhantomData, _room: room }
    }

    /// With a replica beside each server, and the hooks of the system.
    pub(crate) async fn with_allclear() -> Self {
        let mut stage = Self::bare().await;
        let tables = (0..VMS.len()).map(|place| tables::<S>(&stage.trio, place)).collect();
        // Replicas share the processors with clients which never rest; on a VM replicas do not.
        let patient = Cluster::of(&VMS).also("cluster.heartbeat", "250ms").also("cluster.election_timeout", "1s");
        stage.cluster = Some(patient.tables(tables).start().await);
        stage
    }

    /// The place of the member which takes writes.
    pub(crate) fn primary(&self) -> usize {
        until("a primary", || S::primary(&self.trio).ok_or_else(|| "no member says that it is one".into()))
    }

    /// The replicas, of a stage with replicas.
    pub(crate) fn cluster(&self) -> &Cluster {
        self.cluster.as_ref().expect("replicas beside the servers")
    }

    /// An event of these VMs is announced, prepared, and given the all-clear; the platform takes and returns the VMs;
    /// all is restored. Returns the final record of the event.
    pub(crate) async fn event(&mut self, kind: Kind, places: &[usize], away: Duration) -> Event {
        let id = self.announce(kind, places).await;
        self.all_clear(&id, places).await;
        self.take(kind, places, away).await;
        let event = self.over(&id).await;
        // A blocked or failed hook is tried again; the last attempt counts.
        let key = |hook: &Hook| (hook.workload.clone(), hook.vm.clone(), hook.phase.clone());
        let last: BTreeMap<_, _> = event.hooks.iter().map(|hook| (key(hook), hook)).collect();
        for hook in last.into_values() {
            assert!(matches!(hook.outcome.as_deref(), Some("done" | "not_applicable")), "{hook:#?}");
        }
        event
    }

    pub(crate) async fn announce(&self, kind: Kind, places: &[usize]) -> String {
        let order = json!({ "type": format!("{kind:?}"), "source": "Platform", "vms": places });
        self.cluster().cloud.announce(order).await
    }

    /// The all-clear is given, and the platform begins.
    pub(crate) async fn all_clear(&self, id: &str, places: &[usize]) {
        self.cluster().until_stage(observer(places), id, "started").await;
        assert!(!places.contains(&self.primary()), "the primary is on a VM that is taken");
    }

    /// The platform is done with the event, and all is restored.
    pub(crate) async fn over(&self, id: &str) -> Event {
        self.cluster().cloud.finish(id).await;
        self.cluster().closed_everywhere(id).await
    }

    /// The platform's action, with or without a request for approval.
    pub(crate) async fn take(&mut self, kind: Kind, places: &[usize], away: Duration) {
        for place in places.iter().copied() {
            self.take_away(kind, place);
        }
        tokio::time::sleep(away).await;
        for place in places.iter().copied() {
            self.give_back(kind, place);
        }
    }

    pub(crate) fn take_away(&mut self, kind: Kind, place: usize) {
        match &mut self.cluster {
            Some(cluster) if kind == Kind::Freeze => cluster.freeze(place),
            Some(cluster) => cluster.kill(place),
            None => {}
        }
        match kind {
            Kind::Freeze => self.trio.freeze(place),
            Kind::Reboot | Kind::Preempt => self.trio.kill(place),
            Kind::Redeploy | Kind::Terminate => {
                self.trio.kill(place);
                self.trio.lose_data(place).unwrap();
            }
        }
    }

    pub(crate) fn give_back(&mut self, kind: Kind, place: usize) {
        if kind == Kind::Freeze {
            self.trio.thaw(place);
            self.cluster.iter().for_each(|cluster| cluster.thaw(place));
        } else {
            S::boot(&self.trio, place);
            self.cluster.iter_mut().for_each(|cluster| cluster.start(place));
        }
    }

    /// The writers are done, and every member has every acknowledged write, exactly once.
    pub(crate) fn all_is_there(&self, writers: Writers) -> Cost {
        self.all_is_there_on(&[0, 1, 2], writers)
    }

    /// As `all_is_there`, for these members.
    pub(crate) fn all_is_there_on(&self, places: &[usize], writers: Writers) -> Cost {
        let record = writers.stop();
        for place in places {
            until("all rows", || match self.wrong(*place, &record)? {
                wrong if wrong == Wrong::default() => Ok(()),
                wrong => Err(format!("{}: {wrong:?}", VMS[*place])),
            });
        }
        Self::cost(&record, 0)
    }

    /// The writers are done, and acknowledged writes missing on the primary are lost.
    pub(crate) fn what_is_left(&self, writers: Writers) -> Cost {
        let record = writers.stop();
        let lost = until("the primary's rows", || Ok(self.wrong(self.primary(), &record)?.lost));
        Self::cost(&record, lost)
    }

    fn wrong(&self, place: usize, record: &WriteRecord) -> Result<Wrong, String> {
        let rows = S::rows(&self.trio, place).map_err(|error| format!("{}: {error}", VMS[place]))?;
        Ok(record.against(&rows))
    }

    fn cost(record: &WriteRecord, lost: usize) -> Cost {
        let (acknowledged, errors) = (record.acknowledged.len(), record.unknown.len());
        let (since, gap) = record.longest_gap().expect("two writes at least");
        let since = SystemTime::now() - since.elapsed();
        Cost { gap, since, worst: record.worst_gap(), acknowledged, errors, lost }
    }
}

impl<S: System> Drop for Stage<S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.trio.vms.iter().chain([&self.trio.elsewhere]).for_each(|vm| println!("{}", vm.tail()));
        }
    }
}

/// A VM which is not part of an event.
pub(crate) fn observer(places: &[usize]) -> usize {
    (0..VMS.len()).find(|place| !places.contains(place)).expect("a VM that stays")
}
