//! The metadata service of every VM, answered by the simulator's cloud: late, wrongly or not at all where the run wants
//! it so. It writes down every approval, and judges it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allclear::core::model::document::{Document, EventType, Source};
use allclear::core::model::id::{EventId, VmName};
use allclear::core::model::time::Timestamp;
use allclear::imds::{ApiVersion, Approval, MetadataService, NoInformation, Polled};
use allclear::replica::clock;
use allclear_sim::cloud::{self, Approver, Cloud, EventPlan, PlatformBehaviour, Vm};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::dice::Dice;
use crate::world::{Mistake, World};

const TIMEOUT: Duration = Duration::from_secs(10);

/// What is wrong with one VM's service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ailment {
    Silent,
    Empty,
    Failing,
}

pub(crate) struct Platform {
    cloud: Mutex<Cloud>,
    ailing: Mutex<BTreeMap<VmName, Ailment>>,
    posts: Mutex<Posts>,
    dice: Dice,
    pub(crate) vms: Vec<VmName>,
}

#[derive(Default)]
struct Posts {
    count: u64,
    by_event: BTreeMap<EventId, u64>,
    by_approver: BTreeMap<(EventId, VmName), u64>,
}

impl Platform {
    pub(crate) fn new(seed: u64, vms: Vec<VmName>) -> Self {
        let machines = vms.iter().map(|name| Vm { name: name.clone(), zone: None });
        let cloud = Cloud::new(machines, PlatformBehaviour::default(), seed, Timestamp(0));
        let dice = Dice::of(seed, "platform");
        Self { cloud: Mutex::new(cloud), ailing: Mutex::default(), posts: Mutex::default(), dice, vms }
    }

    /// Announces one more event, which the dice make up.
    pub(crate) fn announce(&self, now: Timestamp) -> Option<String> {
        let dice = &self.dice;
        let kind = dice.pick(&[EventType::Reboot, EventType::Redeploy, EventType::Freeze]).clone();
        let source = if dice.percent(50) { Source::User } else { Source::Platform };
        let mut resources = vec![dice.pick(&self.vms).clone()];
        if dice.percent(15) {
            let other = dice.pick(&self.vms).clone();
            resources.extend((resources[0] != other).then_some(other));
        }
        let plan = EventPlan {
            notice: dice.millis(30_000, 120_000),
            impact: dice.millis(100, 8_000),
            linger: dice.millis(100, 5_000),
            cancel_after: dice.percent(10).then(|| dice.millis(2_000, 60_000)),
            ..EventPlan::new(kind, source, resources.clone())
        };
        let shown = format!("{} {} of {resources:?}", plan.source, plan.kind);
        let id = self.cloud().announce(now, plan).ok()?;
        Some(format!("{shown} is announced: {id}"))
    }

    /// Every event is over.
    pub(crate) fn is_quiet(&self, now: Timestamp) -> bool {
        let mut cloud = self.cloud();
        cloud.advance(now);
        cloud.planned() == 0 && cloud.events().iter().all(|event| event.ended.is_some())
    }

    pub(crate) fn events(&self) -> usize {
        self.cloud().events().len()
    }

    /// Whom an event interrupts now.
    pub(crate) fn interrupted(&self, now: Timestamp) -> BTreeSet<VmName> {
        let mut cloud = self.cloud();
        cloud.advance(now);
        self.vms.iter().filter(|vm| cloud.is_impacted(vm)).cloned().collect()
    }

    pub(crate) fn ail(&self, vm: &VmName, ailment: Option<Ailment>) {
        let mut ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
        match ailment {
            Some(ailment) => ailing.insert(vm.clone(), ailment),
            None => ailing.remove(vm),
        };
    }

    pub(crate) fn heal(&self) {
        self.ailing.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn posts(&self) -> u64 {
        self.posts_made().count
    }

    fn ailment(&self, vm: &VmName) -> Option<Ailment> {
        self.ailing.lock().unwrap_or_else(PoisonError::into_inner).get(vm).copied()
    }

    fn cloud(&self) -> MutexGuard<'_, Cloud> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn posts_made(&self) -> MutexGuard<'_, Posts> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One VM's way to it.
pub(crate) struct Metadata {
    pub(crate) world: Arc<World>,
    pub(crate) vm: VmName,
}

impl Metadata {
    async fn answer(&self) -> Result<(), NoInformation> {
        let dice = &self.world.platform.dice;
        tokio::time::sleep(dice.millis(1, 30)).await;
        let place = self.world.platform.vms.iter().position(|vm| *vm == self.vm).unwrap_or(0);
        let begun = Instant::now();
        while self.world.stalls(place) {
            if begun.elapsed() >= TIMEOUT {
                return Err(NoInformation::Timeout { after: TIMEOUT });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        match self.world.platform.ailment(&self.vm) {
            None => Ok(()),
            Some(Ailment::Empty) => Err(NoInformation::EmptyBody),
            Some(Ailment::Failing) => Err(NoInformation::Status { code: 500, said: String::new() }),
            Some(Ailment::Silent) => {
                tokio::time::sleep(TIMEOUT).await;
                Err(NoInformation::Timeout { after: TIMEOUT })
            }
        }
    }

    /// The request has arrived: the platform does what it is told, and the observer looks whether it was to.
    fn take(&self, event: &EventId) -> cloud::ApprovalEffect {
        let world = &self.world;
        let result = world.platform.cloud().approve(clock::now(), Approver::Vm(self.vm.clone()), event);
        world.trace.line(format_args!("{} posts {event}: {result:?}", self.vm));
        let state = world.history.latest();
        let known = state.event(event);
        let claims = known.map_or(0, |known| known.claims.iter().filter(|claim| claim.approver == self.vm).count());
        let is_alone = world.hosts().iter().any(|host| self.vm == VmName::new(&host.name) && !host.glance.has_leader);
        let cloud = world.platform.cloud();
        let by_user = cloud.event(event).is_some_and(|event| event.plan.source == Source::User);
        let mut posts = world.platform.posts_made();
        let own = posts.by_approver.entry((event.clone(), self.vm.clone())).or_default();
        *own += 1;
        if *own > claims as u64 && !(by_user && is_alone) {
            world.history.wrong(format!("S3: {} posts {event} {own} times, and was named {claims} times", self.vm));
        }
        posts.count += 1;
        let count = posts.by_event.entry(event.clone()).or_default();
        *count += 1;
        if *count > 1 && world.manner.is_quiet {
            world.history.wrong(format!("S2: nothing is wrong, and {event} is posted {count} times"));
        }
        result
    }
}

impl MetadataService for Metadata {
    fn poll(&self) -> BoxFuture<'_, Result<Polled, NoInformation>> {
        Box::pin(async {
            self.answer().await?;
            let now = clock::now();
            let notice = self.world.platform.cloud().poll(now, &self.vm);
            let events = notice.map(|notice| notice.events).unwrap_or_default();
            let date = Some(Timestamp(now.0.div_euclid(1000) * 1000));
            Ok(Polled { document: Document::new(events), version: ApiVersion::newest(), took: Duration::ZERO, date })
        })
    }

    fn look(&self) -> BoxFuture<'_, Result<Polled, NoInformation>> {
        self.poll()
    }

    fn approve<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            if let Err(why) = self.answer().await {
                return match why {
                    NoInformation::Status { code, .. } => Approval::Refused(code),
                    why => Approval::Unknown(why),
                };
            }
            let result = self.take(event);
            if self.world.mistake == Mistake::PostsTwice {
                self.take(event);
            }
            let platform = &self.world.platform;
            if !self.world.manner.is_quiet && platform.dice.percent(15) {
                tokio::time::sleep(TIMEOUT).await;
                return Approval::Unknown(NoInformation::Timeout { after: TIMEOUT });
            }
            match result {
                cloud::ApprovalEffect::Accepted | cloud::ApprovalEffect::Repeated => Approval::Accepted,
                cloud::ApprovalEffect::Started | cloud::ApprovalEffect::Finished | cloud::ApprovalEffect::Unknown => {
                    Approval::Refused(400)
                }
            }
        })
    }
}
