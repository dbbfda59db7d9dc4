//! Valid documents, and answers that only resemble documents.

use allclear::imds::{MAX_BODY, MAX_EVENTS, NoInformation, read_document};

use super::{EMPTY, document_with};

fn word(body: impl AsRef<[u8]>) -> &'static str {
    read_document(200, body.as_ref()).map_or_else(|why| why.word(), |_| "document")
}

#[test]
fn the_incarnation_may_be_a_number_or_digits() {
    for incarnation in ["0", "1", "18446744073709551615", "-1", r#""2""#, r#""00""#, r#""99999999999999999999999""#] {
        assert_eq!(
            word(format!(r#"{{"DocumentIncarnation":{incarnation},"Events":[]}}"#)),
            "document",
            "{incarnation}"
        );
    }
    for incarnation in ["null", "true", "1.5", "1e3", "[]", "{}", r#""""#, r#"" 1""#, r#""x""#, r#""-1""#] {
        let body = format!(r#"{{"DocumentIncarnation":{incarnation},"Events":[]}}"#);
        assert_eq!(word(body), "no_incarnation", "{incarnation}");
    }
}

#[test]
fn only_an_array_of_events_can_say_that_there_are_none() {
    assert_eq!(word(EMPTY), "document");
    for events in ["null", "{}", r#""""#, "0", "false"] {
        assert_eq!(word(format!(r#"{{"DocumentIncarnation":1,"Events":{events}}}"#)), "no_events_array", "{events}");
    }
    assert_eq!(word(r#"{"DocumentIncarnation":1}"#), "no_events_array");
    assert_eq!(word(r#"{"DocumentIncarnation":1,"events":[]}"#), "no_events_array");
}

#[test]
fn everything_else_is_no_information() {
    for (body, expected) in [
        (&b""[..], "empty_body"),
        (b" \r\n\t", "empty_body"),
        (b"\xef\xbb\xbf", "empty_body"),
        (b"<html><body>Please log in</body></html>", "not_json"),
        (b"OK", "not_json"),
        (b"null", "not_object"),
        (b"[]", "not_object"),
        (b"\"Events\"", "not_object"),
        (b"{}", "no_incarnation"),
        (br#"{"error":"Bad request","newest-versions":["2025-04-07"]}"#, "no_incarnation"),
        (br#"{"Events":[]}"#, "no_incarnation"),
        (br#"{"DocumentIncarnation":1,"Events":["#, "not_json"),
        (br#"{"DocumentIncarnation":1,"Events":[]}}"#, "not_json"),
        (br#"{"DocumentIncarnation":1,"Events":[],}"#, "not_json"),
        (br#"{"DocumentIncarnation":1,"Events":[],"Events":[]}"#, "not_json"),
        (b"{\"DocumentIncarnation\":1,\"Events\":[],\"\xff\":1}", "not_json"),
        (b"\x00\x01\x02", "not_json"),
    ] {
        assert_eq!(word(body), expected, "{}", body.escape_ascii());
    }
}

#[test]
fn every_cut_of_a_document_is_no_information() {
    let whole = document_with(r#"{"EventId":"A","EventStatus":"Scheduled","Resources":["vm"],"Description":"é\n"}"#);
    for end in 0..whole.len() {
        assert_ne!(word(&whole.as_bytes()[..end]), "document", "{end}");
    }
    assert_eq!(word(&whole), "document");
}

#[test]
fn a_byte_order_mark_and_unknown_fields_do_no_harm() {
    assert_eq!(word(format!("\u{feff}{EMPTY}\n")), "document");
    assert_eq!(word(r#"{"DocumentIncarnation":1,"Events":[],"Next":{"a":[1]}}"#), "document");
}

#[test]
fn sizes_are_bounded() {
    let events = |count: usize| {
        let events = (0..count).map(|id| format!(r#"{{"EventId":"{id}"}}"#)).collect::<Vec<_>>();
        document_with(&events.join(","))
    };
    assert_eq!(word(events(MAX_EVENTS)), "document");
    assert_eq!(word(events(MAX_EVENTS + 1)), "too_many_events");
    assert_eq!(word(" ".repeat(MAX_BODY - EMPTY.len()) + EMPTY), "document");
    assert_eq!(word(" ".repeat(MAX_BODY - EMPTY.len() + 1) + EMPTY), "too_large");
    assert_eq!(word("[".repeat(MAX_BODY)), "not_json");
}

#[test]
fn no_status_but_200_brings_a_document() {
    for status in (100..=599).filter(|status| *status != 200) {
        let read = read_document(status, EMPTY.as_bytes());
        match status {
            300..=399 => assert_eq!(read, Err(NoInformation::Redirect { code: status })),
            403 | 421 => assert_eq!(read, Err(NoInformation::NotAllowed { code: status })),
            404 => assert!(matches!(read, Err(NoInformation::NotServed { .. }))),
            502 => assert_eq!(read, Err(NoInformation::BadGateway)),
            _ => assert!(matches!(read, Err(NoInformation::Status { code, .. }) if code == status), "{status}"),
        }
    }
}

#[test]
fn of_the_400s_only_the_vendors_object_is_a_refusal_of_the_version() {
    let object = br#"{"error":"Bad request. api-version is invalid","newest-versions":["2025-04-07","2024-07-17"]}"#;
    assert_eq!(
        read_document(400, object),
        Err(NoInformation::VersionRefused {
            said: "Bad request. api-version is invalid".into(),
            newest: vec!["2025-04-07".into(), "2024-07-17".into()]
        })
    );
    for (status, body) in
        [(400, &b"{}"[..]), (400, b""), (400, br#"{"error":"no header"}"#), (405, object), (500, object)]
    {
        assert!(matches!(read_document(status, body), Err(NoInformation::Status { code, .. }) if code == status));
    }
}

#[test]
fn every_reason_is_worded_for_people() {
    let long = format!(r#"{{"error":"{}"}}"#, "x".repeat(100_000));
    for (status, body) in [
        (200, &b""[..]),
        (200, b"<"),
        (200, b"1"),
        (200, b"{}"),
        (302, b""),
        (403, b""),
        (404, b""),
        (421, b""),
        (500, long.as_bytes()),
        (502, b""),
    ] {
        let text = read_document(status, body).unwrap_err().to_string();
        assert!(text.contains("metadata endpoint") && text.len() < 500, "{text}");
        let is_guarded = matches!(status, 403 | 421 | 502);
        assert_eq!(text.contains("Metadata Security Protocol"), is_guarded, "{text}");
    }
}
