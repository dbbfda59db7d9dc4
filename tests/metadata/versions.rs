//! A refused api-version: two fallbacks, with a log message.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use allclear::core::model::id::EventId;
use allclear::imds::NoInformation;
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

use super::server::{LIMIT, Server};
use super::{EMPTY, endpoint, says};

/// Accepts only one version, as an old service would.
async fn service_of(taken: &'static str) -> Server {
    let refusal = r#"{"error":"Bad request. api-version is invalid","newest-versions":["2025-04-07","2024-07-17"]}"#;
    Server::start(move |request| if request.line.ends_with(taken) { says(200, EMPTY) } else { says(400, refusal) })
        .await
}

#[tokio::test]
async fn a_refused_version_falls_back_and_the_version_in_use_is_told() {
    for (taken, refusals) in [("2020-07-01", 0), ("2019-08-01", 1), ("2017-08-01", 2)] {
        let server = service_of(taken).await;
        let endpoint = endpoint(&server);
        for _ in 0..refusals {
            assert!(matches!(endpoint.poll().await, Err(NoInformation::VersionRefused { .. })));
        }
        for _ in 0..2 {
            assert_eq!(endpoint.poll().await.unwrap().version.to_string(), taken);
        }
        endpoint.approve(&EventId::new("A"), LIMIT).await;
        assert_eq!(server.lines().last().unwrap(), &format!("POST /metadata/scheduledevents?api-version={taken}"));
    }
}

#[tokio::test]
async fn three_times_404_in_a_row_is_a_refusal_too_with_or_without_a_list_of_versions() {
    for body in ["", "<html>Not found</html>", r#"{"error":"Not found","newest-versions":["2017-08-01"]}"#] {
        let taken = "2017-08-01";
        let server = Server::start(
            move |request| if request.line.ends_with(taken) { says(200, EMPTY) } else { says(404, body) },
        )
        .await;
        let endpoint = endpoint(&server);
        for _ in 0..6 {
            assert!(matches!(endpoint.poll().await, Err(NoInformation::NotServed { .. })));
        }
        assert_eq!(endpoint.poll().await.unwrap().version.to_string(), taken);
    }
}

#[tokio::test]
async fn no_version_is_tried_that_the_service_only_lists() {
    let server = service_of("2025-04-07").await;
    let endpoint = endpoint(&server);
    for _ in 0..4 {
        endpoint.poll().await.unwrap_err();
    }
    let versions = server.lines().iter().map(|line| line.rsplit('=').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(versions, ["2020-07-01", "2019-08-01", "2017-08-01", "2020-07-01"]);
}

#[tokio::test]
async fn a_400_for_another_reason_does_not_change_the_version() {
    let server = Server::saying(says(400, r#"{"error":"Required metadata header not specified"}"#)).await;
    let endpoint = endpoint(&server);
    for _ in 0..3 {
        assert!(matches!(endpoint.poll().await, Err(NoInformation::Status { code: 400, .. })));
    }
    assert!(server.lines().iter().all(|line| line.ends_with("2020-07-01")));
}

#[tokio::test]
async fn a_fallback_is_logged_as_a_warning_with_both_versions() {
    let (log, _guard) = Log::kept();
    let server = service_of("2019-08-01").await;
    endpoint(&server).poll().await.unwrap_err();
    let text = log.text();
    for part in ["WARN", "refused=2020-07-01", "next=2019-08-01", "api_version"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn an_endpoint_that_serves_no_version_is_logged_once_for_each() {
    let (log, _guard) = Log::kept();
    let server = Server::saying(says(404, "")).await;
    let endpoint = endpoint(&server);
    for _ in 0..20 {
        endpoint.poll().await.unwrap_err();
    }
    assert_eq!(log.text().matches("WARN").count(), 3, "{}", log.text());
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// What this thread logs, as long as the guard is kept.
    ///
    /// With only one `Dispatch` in the process, tracing asks the thread that comes first to a log line whether anybody
    /// wants it. A thread of another test says no, for all threads. With a second `Dispatch`, tracing asks both.
    fn kept() -> (Self, tracing::subscriber::DefaultGuard) {
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
        LazyLock::force(&SECOND);
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
