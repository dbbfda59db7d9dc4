//! The beats by which the leader knows who answers: hearing them, and sending this replica's own.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::machine::id::VmName;
use crate::machine::situation::Channel;
use crate::replica::contacts::{BEAT_EVERY, Contacts, Health, Told};
use crate::replica::here::Here;
use crate::replica::observer::Observer;
use crate::wire::pb::allclear::cluster::v1 as wire;
use crate::wire::pb::allclear::cluster::v1::contact_client::ContactClient;
use crate::wire::pb::allclear::cluster::v1::contact_server::{self, ContactServer};

/// A leader that does not reply to a beat by then has not heard it.
const REPLY_WITHIN: Duration = Duration::from_secs(1);

struct Hearing {
    here: Arc<Here>,
}

/// Hears the beats of the other replicas.
pub fn contact_service(here: Arc<Here>) -> ContactServer<impl contact_server::Contact> {
    ContactServer::new(Hearing { here })
}

#[tonic::async_trait]
impl contact_server::Contact for Hearing {
    async fn beat(&self, request: Request<wire::BeatRequest>) -> Result<Response<wire::BeatResponse>, Status> {
        let beat = request.into_inner();
        let replica = VmName::new(&beat.replica);
        let members = self.here.everybody();
        if beat.cluster != self.here.cluster || !members.contains(&replica) {
            let message = format!("{} of cluster {:?} is no member here", beat.replica, beat.cluster);
            return Err(Status::permission_denied(message));
        }
        if !self.here.leads() {
            return Err(Status::failed_precondition(format!("{} does not lead", self.here.name)));
        }
        self.here.contacts.heard(&replica, health(beat.channel.as_ref()));
        Ok(Response::new(wire::BeatResponse { contacts: told(&self.here.contacts, &members) }))
    }
}

/// Tells the leader how this replica is, until it is stopped.
pub async fn beat(here: Arc<Here>, observer: Arc<Observer>, stop: CancellationToken) {
    let mut standing = here.consensus.standing();
    loop {
        let leader = standing.borrow_and_update().leader.clone();
        let own = observer.health();
        here.contacts.heard(&here.name, own);
        if let Some(leader) = leader.as_ref().filter(|leader| VmName::new(leader) != here.name) {
            tokio::select! {
                () = speak(&here, leader, own) => {}
                () = stop.cancelled() => return,
            }
        }
        tokio::select! {
            () = tokio::time::sleep(BEAT_EVERY) => {}
            _ = standing.wait_for(|standing| standing.leader != leader) => {}
            () = observer.health_changes_from(own.channel) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn speak(here: &Here, leader: &str, own: Health) {
    let Some(channel) = here.consensus.channel(leader) else {
        return;
    };
    let request = wire::BeatRequest {
        cluster: here.cluster.clone(),
        replica: here.name.to_string(),
        channel: Some(wire_health(own)),
    };
    let mut client = ContactClient::new(channel);
    match tokio::time::timeout(REPLY_WITHIN, client.beat(request)).await {
        Ok(Ok(reply)) => here.contacts.told(read(reply.into_inner().contacts)),
        Ok(Err(status)) => tracing::debug!(leader, %status, "the leader did not take the beat"),
        Err(_) => tracing::debug!(leader, "the leader did not answer the beat"),
    }
}

fn told(contacts: &Contacts, members: &[VmName]) -> Vec<wire::ReplicaContact> {
    let known = contacts.of(members, |at| at).into_iter();
    let told = known.map(|(name, contact)| wire::ReplicaContact {
        replica: name.to_string(),
        reachable: contact.reachable,
        channel: Some(wire_health(Health { channel: contact.channel, document_age: contact.document_age })),
    });
    told.collect()
}

fn read(contacts: Vec<wire::ReplicaContact>) -> Told {
    let known = contacts.into_iter();
    known.map(|each| (VmName::new(&each.replica), (each.reachable, health(each.channel.as_ref())))).collect()
}

fn health(told: Option<&wire::ChannelHealth>) -> Health {
    // A word this program does not know is no proof of health.
    let channel = match told.map(|told| told.word.as_str()) {
        Some("healthy") => Channel::Healthy,
        Some("stalled") => Channel::Stalled,
        _ => Channel::Unknown,
    };
    Health { channel, document_age: told.and_then(|told| told.document_age_ms).map(Duration::from_millis) }
}

fn wire_health(health: Health) -> wire::ChannelHealth {
    let document_age_ms = health.document_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    wire::ChannelHealth { word: health.channel.as_word().into(), document_age_ms }
}
