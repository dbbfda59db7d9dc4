//! The exit of an `allclear run` that cannot begin: faults repaired only by another configuration have an exit code of
//! their own, for a service manager that would otherwise retry for ever.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use super::allclear;
use super::doctor::Bench;
use super::{stderr, stdout, written};

fn runs(bench: &Bench, text: &str) -> (Option<i32>, String) {
    let path = written(bench.folder.path(), text);
    let output = allclear(&["run", "--config", &path], &[]);
    (output.status.code(), stderr(&output).to_owned())
}

#[test]
fn a_panic_of_one_task_ends_the_process() {
    const PANICS: &str = "ALLCLEAR_TEST_PANICS";
    if std::env::var_os(PANICS).is_some() {
        allclear_server::exit::end_at_a_panic();
        let runtime = allclear_server::exit::runtime().unwrap();
        let ended = runtime.block_on(async { tokio::spawn(async { panic!("on purpose") }).await });
        panic!("the process outlived the task: {ended:?}");
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", crate::own_test!(a_panic_of_one_task_ends_the_process), "--nocapture"]);
    let output = again.env(PANICS, "1").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::SIGABRT as i32), "{output:?}");
    assert!(stderr(&output).contains("on purpose") && !stderr(&output).contains("outlived"), "{output:?}");
}

#[test]
fn a_vm_that_the_configuration_does_not_list_is_no_reason_to_try_again() {
    let bench = Bench::new();
    // The name comes from the instance metadata, which says db-0.
    let strangers = bench.pair().replace("name = \"db-0\"\n", "").replace("{ db-0 =", "{ db-7 =");
    let (code, said) = runs(&bench, &strangers);
    assert!(
        code == Some(2) && said.contains("names this VM db-0") && said.contains("(db-7, db-1)"),
        "{code:?}: {said}"
    );
    // With a written name, the fault is found before any request.
    let path = written(bench.folder.path(), &bench.pair().replace("{ db-0 =", "{ db-7 ="));
    for command in ["run", "check"] {
        let output = allclear(&[command, "--config", &path], &[]);
        assert_eq!(output.status.code(), Some(2), "{command}: {}", stderr(&output));
    }
}

#[test]
fn a_data_directory_of_somebody_else_is_no_reason_to_try_again() {
    let bench = Bench::new();
    let text = bench.alone();
    let replica = bench.run(&text);
    let operator = bench.path("operator");
    let leads = || {
        let told = allclear(&["status", "--json", "--endpoint", &operator], &[]);
        stdout(&told).contains("\"quorum\":true")
    };
    assert!(super::comes_true(leads), "the replica never began");
    drop(replica);
    let (code, said) = runs(&bench, &text.replace("name = \"tests\"", "name = \"others\""));
    assert!(code == Some(2) && said.contains("belongs to cluster \"tests\""), "{code:?}: {said}");
    let renamed = text.replace("name = \"db-0\"", "name = \"db-1\"");
    let (code, said) = runs(&bench, &renamed);
    assert!(code == Some(2) && said.contains("belongs to replica \"db-0\""), "{code:?}: {said}");
}

#[test]
fn what_may_come_right_by_itself_is_tried_again() {
    let bench = Bench::new();
    std::fs::write(bench.path("data"), "a file").unwrap();
    let (code, said) = runs(&bench, &bench.text());
    assert!(code == Some(1) && said.contains("cannot use"), "{code:?}: {said}");
    std::fs::remove_file(bench.path("data")).unwrap();
    let taken = TcpListener::bind(bench.addresses[0]).unwrap();
    let (code, said) = runs(&bench, &bench.text());
    assert!(code == Some(1) && said.contains("cluster.listen: cannot listen"), "{code:?}: {said}");
    drop(taken);
}

#[test]
fn a_socket_is_not_served_through_a_symbolic_link() {
    let bench = Bench::new();
    let (victim, link) = (bench.path("victim"), bench.path("operator"));
    std::fs::write(&victim, "kept").unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let (code, said) = runs(&bench, &bench.text());
    assert!(code == Some(1) && said.contains("exists and is a symbolic link"), "{code:?}: {said}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
}
