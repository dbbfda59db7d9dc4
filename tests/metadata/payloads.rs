//! Every example document, over the wire, compared with the expected result.

use serde_json::Value;

use allclear::core::model::document::{Announcement, NotBefore};

use super::server::Server;
use super::{endpoint, says};

/// In the order of `payloads.json`.
const READ_AS: [&str; 19] = [
    "document",
    "document 4CAEA225-A741-474D-A72E-428C86FCD853 Scheduled Reboot User flatcar-vm1 at 1626929417000 for unknown",
    "document",
    "document D3D9DFEC-1DCA-4B49-97AA-780E02F45DFE Started Freeze Platform aks-nodepool1-21922338-vmss_47 \
     at unknown for unknown",
    "no_incarnation",
    "document 32504B35-D66B-4D0A-8C64-C9DDBBD0EA13 Started Freeze Platform spot-node-34525998-vmss_24 \
     at unknown for 6s",
    "document 465D3B0F-D7F2-4239-AC11-1B9800E73DBC Started Freeze Platform spot-node-34525998-vmss_6 \
     at unknown for 30s",
    "no_incarnation",
    "document 51941B56-8080-45AC-81AE-8BDA818F5958 Scheduled Preempt Platform aks-workloads1-15413341-vmss_3 \
     at 1710618729000 for unknown",
    "document A123BC45-1234-5678-AB90-ABCDEF123456 Scheduled Preempt Platform myspotvm at 1615856326000 for unknown",
    "not_json",
    "empty_body",
    "document",
    "document C7061BAC-AFDC-4513-B24B-AA5F13A16123 Scheduled Freeze Platform WestNO_0,WestNO_1 \
     at 1649716018000 for 5s",
    "document C7061BAC-AFDC-4513-B24B-AA5F13A16123 Started Freeze Platform WestNO_0,WestNO_1 at unknown for 5s",
    "document",
    "version_refused",
    "no_incarnation",
    "document 04b2d4b4-02b8-47d7-8050-2e771842df76 Scheduled Freeze Platform vm_0,vm_1 at 1795223340000 for 5s",
];

#[tokio::test]
async fn every_example_document_is_read_for_what_it_is() {
    let examples: Vec<Value> = serde_json::from_str(include_str!("payloads.json")).unwrap();
    assert_eq!(examples.len(), READ_AS.len());
    for (position, (example, expected)) in examples.iter().zip(READ_AS).enumerate() {
        assert_eq!(read(example, |_| {}).await, expected, "example {position}");
    }
}

#[tokio::test]
async fn events_that_were_logged_alone_are_read_in_a_document() {
    let examples: Vec<Value> = serde_json::from_str(include_str!("payloads.json")).unwrap();
    let alone = examples.iter().filter(|example| example["fidelity"] == "live-capture-event-only");
    let mut read_as = Vec::new();
    for example in alone {
        read_as.push(read(example, |payload| payload["DocumentIncarnation"] = 7.into()).await);
    }
    assert_eq!(
        read_as,
        [
            "document CA9C0DC4-E841-476D-94D5-9FC2FF983BCD Scheduled Reboot User \
             longevity-10gb-3h-master-db-node-eastus-2 \
             at 1678975288000 for unknown",
            "document B2BC520E-BDA2-44A0-BF75-0C320524BB47 Started Freeze Platform aks-testspot-38041100-vmss_25 \
             at unknown for 30s",
        ]
    );
}

async fn read(example: &Value, change: impl Fn(&mut Value)) -> String {
    let mut payload = example["payload"].clone();
    change(&mut payload);
    // Bodies that are no JSON are kept as text.
    let body = payload.as_str().map_or_else(|| payload.to_string(), str::to_owned);
    let status = if payload.get("newest-versions").is_some() { 400 } else { 200 };
    let server = Server::saying(says(status, body)).await;
    match endpoint(&server).poll().await {
        Ok(polled) => polled.document.events.iter().map(summary).fold("document".to_owned(), |all, event| all + &event),
        Err(why) => why.word().to_owned(),
    }
}

fn summary(event: &Announcement) -> String {
    let at = match event.not_before {
        NotBefore::At(moment) => moment.0.to_string(),
        NotBefore::Unknown => "unknown".to_owned(),
    };
    let duration = event.duration.map_or_else(|| "unknown".to_owned(), |duration| format!("{duration:?}"));
    let resources = event.resources.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let (id, status, kind, source) = (event.id.as_received(), &event.status, &event.kind, &event.source);
    format!(" {id} {status} {kind} {source} {resources} at {at} for {duration}")
}
