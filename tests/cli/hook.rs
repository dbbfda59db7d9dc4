//! `allclear hook run`: the input and output of a hook, and the files left behind.

use serde_json::Value;

use super::doctor::Bench;
use super::{allclear, stderr, stdout, written};

/// Prints its environment, and exits as commanded.
const SCRIPT: &str = "#!/bin/sh
echo \"progress: half of it\"
echo \"$ALLCLEAR_PHASE $ALLCLEAR_INTENT $ALLCLEAR_MODE $ALLCLEAR_VM $ALLCLEAR_AVOID_VMS $PASSWORD\"
echo \"$ALLCLEAR_EVENT_TYPE of $ALLCLEAR_EVENT_RESOURCES, umask $(umask)\" >&2
exit ${EXITS:-0}
";

struct Hooks {
    bench: Bench,
    path: String,
}

impl Hooks {
    fn of(hooks: &[&str]) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let bench = Bench::new();
        let script = bench.path("hook.sh");
        std::fs::write(&script, SCRIPT).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let tables = hooks.iter().map(|keys| format!("[[workload.hook]]\ncommand = [{script:?}]\n{keys}\n"));
        let text = format!("{}[[workload]]\nname = \"w\"\ngroup = \"g\"\n{}", bench.text(), tables.collect::<String>());
        let path = written(bench.folder.path(), &text);
        Self { bench, path }
    }

    fn change(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.path).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&self.path, text.replacen(from, to, 1)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        // Every file left behind is found.
        let temporary = self.bench.path("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        let whole = [&["hook", "run", "--config", &self.path], arguments].concat();
        let output = allclear(&whole, &[("PATH", "/usr/bin:/bin"), ("TMPDIR", &temporary)]);
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "something is left in TMPDIR");
        (output.status.code(), stdout(&output).to_owned(), stderr(&output).to_owned())
    }
}

#[test]
fn one_hook_is_run_by_itself_and_what_it_is_told_and_answers_is_shown() {
    let hooks = Hooks::of(&["phase = \"drain\"\nenv = { PASSWORD = \"hidden from all\" }"]);
    let (code, text, progress) = hooks.run(&["db-0/w/drain", "--avoid", "db-1", "--type", "Redeploy"]);
    assert_eq!(code, Some(0), "{text}{progress}");
    assert_eq!(progress, "progress: half of it\n");
    for told in [
        "db-0/w/drain runs ",
        "  ALLCLEAR_MODE=rehearsal",
        "  ALLCLEAR_EVENT_ID=drill-by-hand",
        "  PASSWORD=***",
        "drain run rehearsal db-0 db-1 ***",
        "  Redeploy of db-0, umask 0077",
        ": done",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(!text.contains("hidden"), "{text}");
    let (code, text, _) = hooks.run(&["db-0/w/drain", "--json"]);
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &shown["outcome"], &shown["told"]["ALLCLEAR_GROUP"]), (Some(0), &"done".into(), &"g".into()));
}

/// A hook that remembers its steps would answer a second run with the outcome of the first.
#[test]
fn every_run_is_a_step_of_its_own_that_a_confirmation_can_name() {
    let hooks = Hooks::of(&["phase = \"drain\"\nconfirm = [\"/bin/true\"]"]);
    let step = |arguments: &[&str]| {
        let (code, text, why) = hooks.run(&[&["db-0/w/drain", "--json"], arguments].concat());
        assert_eq!(code, Some(0), "{text}{why}");
        serde_json::from_str::<Value>(&text).unwrap()["told"]["ALLCLEAR_STEP"].as_str().unwrap().to_owned()
    };
    let first = step(&[]);
    assert_ne!(step(&[]), first);
    assert_eq!(step(&["--intent", "confirm", "--step", &first]), first);
    let (code, _, why) = hooks.run(&["db-0/w/drain", "--intent", "confirm"]);
    assert!(code == Some(2) && why.contains("--intent confirm needs --step STEP"), "{code:?}: {why}");
    let (code, _, why) = hooks.run(&["db-0/w/drain", "--intent", "confirm", "--step", "e-1/drain"]);
    assert!(code == Some(2) && why.contains("write the ALLCLEAR_STEP"), "{code:?}: {why}");
}

/// On this VM, the hook of another VM would act on the wrong server.
#[test]
fn the_hook_of_another_vm_is_not_run_here() {
    let hooks = Hooks::of(&["phase = \"failover\"", "phase = \"drain\"\nruns_on = \"any\""]);
    let (code, text, why) = hooks.run(&["db-1/w/failover"]);
    assert_eq!((code, text.as_str()), (Some(2), ""));
    assert!(why.contains("this VM is db-0: run the command on db-1"), "{why}");
    let (code, text, _) = hooks.run(&["db-1/w/drain"]);
    assert!(code == Some(0) && text.contains("drain run rehearsal db-1"), "{text}");
    // The templates for Azure leave the name out: the metadata service has it.
    hooks.change("name = \"db-0\"\n", "");
    let (code, _, why) = hooks.run(&["db-1/w/failover"]);
    assert!(code == Some(2) && why.contains("this VM is db-0: run the command on db-1"), "{why}");
    assert_eq!(hooks.run(&["db-0/w/failover"]).0, Some(0));
    hooks.change(&hooks.bench.endpoint.clone(), &format!("http://{}", hooks.bench.addresses[2]));
    let (code, _, why) = hooks.run(&["db-0/w/failover"]);
    assert!(code == Some(2) && why.contains("set [replica] name to the name of this VM"), "{why}");
}

#[test]
fn what_fails_says_why_and_what_is_not_there_is_named() {
    let hooks = Hooks::of(&[
        "phase = \"drain\"\nname = \"first\"\nenv = { EXITS = \"75\" }",
        "phase = \"drain\"\nname = \"second\"\ndry_run = true\nenv = { EXITS = \"3\" }",
    ]);
    let (code, text, _) = hooks.run(&["db-0/w/drain#first"]);
    assert!(code == Some(1) && text.contains(": blocked: Reboot of db-0, umask 0077"), "{text}");
    let (code, text, _) = hooks.run(&["db-0/w/drain#2", "--dry-run"]);
    assert!(code == Some(1) && text.contains(": failed: Reboot of db-0") && text.contains("MODE=dry_run"), "{text}");
    for (arguments, why) in [
        (&["db-0/w/drain"][..], "it has db-0/w/drain#first, db-0/w/drain#second"),
        (&["db-0/w/restore"], "it has db-0/w/drain#first"),
        (&["drain"], "write VM/WORKLOAD/PHASE"),
        (&["db-0/w/drain#first", "--dry-run"], "does not declare dry_run"),
        (&["db-0/w/drain#first", "--intent", "walk"], "write run, confirm or undo"),
    ] {
        let (code, _, said) = hooks.run(arguments);
        assert!(code == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
    let (code, _, said) = hooks.run(&["db-0/w/drain#first", "--intent", "undo", "--step", "drill-by-hand-1/drain"]);
    assert!(code == Some(1) && said.contains("has no `undo`"), "{said}");
}
