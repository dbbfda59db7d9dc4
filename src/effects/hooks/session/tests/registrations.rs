//! The names of workloads: taken, reserved and given back.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_live_session_is_not_taken_over_by_another_process() {
    let bench = SessionFixture::open();
    let (_, mut told) = bench.dial(greeting("1"));
    assert_eq!(
        bench.sessions.reserve(&WorkloadName("db".into()), "2").err(),
        Some(RegistrationError::Taken(workload("db").name))
    );
    let (_, again) = bench.dial(greeting("1"));
    assert_eq!(words(&mut told), ["go away"], "the same process dialled again");
    drop(again);
    assert!(bench.sessions.reserve(&WorkloadName("db".into()), "2").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_name_is_reserved_for_one_and_there_are_so_many_seats() {
    let bench = SessionFixture::open();
    let names = (0..WORKLOAD_LIMIT).map(|number| WorkloadName(number.to_string()));
    let mut held: Vec<_> = names.map(|name| bench.sessions.reserve(&name, "1").unwrap()).collect();
    let taken = bench.sessions.reserve(&WorkloadName("0".into()), "1");
    assert!(matches!(taken.err(), Some(RegistrationError::Taken(_))));
    assert_eq!(bench.sessions.reserve(&workload("db").name, "1").err(), Some(RegistrationError::Full));
    held.pop();
    assert!(bench.sessions.reserve(&workload("db").name, "1").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_registration_goes_when_its_time_without_a_session_is_over() {
    let bench = SessionFixture::open();
    let name = workload("db").name;
    let (_, told) = bench.dial(Hello { retain: Some(20 * SECOND), ..greeting("1") });
    drop(told);
    sleep(29 * SECOND).await;
    assert!(!bench.sessions.presences()[0].is_due_to_go);
    sleep(2 * SECOND).await;
    assert!(bench.sessions.presences()[0].is_due_to_go);
    let (_, _line) = bench.dial(greeting("2"));
    bench.sessions.deregister(&name);
    assert!(bench.sessions.is_seated(&name), "it came back before it was taken off");
}
