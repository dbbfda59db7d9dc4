//! Hooks that print all their secrets, in every way available to hooks: no secret is reported or stored. Secret files,
//! read in place of values, must be neither readable nor exchangeable by other users.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::path::PathBuf;

use allclear::hooks::{HookCommand, HookOutcome, HookUpdate};

use crate::workloads::bench::{Bench, end, next, task};

/// Each secret in its context, and the parts that must not be readable anywhere.
const PASSWORD: &str = "battery staple";
const ADDRESS: &str = "postgres://me:h0rse-of@db-0/orders";
const SETTINGS: &str = "user=me password=c0rrect-h host=db-0";
const KEY: &str = "-----BEGIN-----\nzmFyYWRheQ\nbWF4d2VsbA\n-----END-----";
const IN_A_FILE: &str = "kept-in-a-file";
const PARTS: [&str; 9] =
    ["battery", "staple", "batte\n", "h0rse-of", "c0rrect-h", "zmFyYWRheQ", "bWF4d2VsbA", IN_A_FILE, "me:h0"];

/// All secrets at once, in pieces, over broken lines, as JSON, and as the reason at the end.
const SAY_ALL: &str = r#"env; env >&2
echo "progress: $PASSWORD, $ADDRESS, ${ADDRESS##*me:}, ${SETTINGS#*password=}, $TOKEN"; sleep 1.2
for piece in 'progress: of batt' 'ery sta' 'ple
'; do printf "$piece"; sleep 0.1; done; sleep 1.2
printf '%s\n' "$PASSWORD" "$TOKEN" "$KEY" | fold -w 5
printf '%s\n' "$KEY" | while read -r line; do echo "progress: $line"; echo "$line" >&2; done; sleep 1.2
printf '{"KEY":"%s"}\n' "$(printf '%s' "$KEY" | sed ':a;N;$!ba;s/\n/\\n/g')"
(set -x; : "$PASSWORD" "$TOKEN")
echo "asked at $PORT with $PIN: $PASSWORD $ADDRESS $TOKEN ${KEY##*RheQ
}" | tr '\n' ' ' >&2; exit 1"#;

fn file(bench: &Bench, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = bench.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

fn hook(bench: &Bench, script: &str, token: PathBuf) -> HookCommand {
    let mut hook = bench.shell(script);
    let given = [("PASSWORD", PASSWORD), ("ADDRESS", ADDRESS), ("SETTINGS", SETTINGS), ("KEY", KEY)];
    for (name, value) in given.into_iter().chain([("PIN", "7q8"), ("PORT", "5432")]) {
        hook.env.insert(name.into(), value.into());
    }
    hook.shown.insert("PORT".into());
    hook.env_files.insert("TOKEN".into(), token);
    hook
}

#[tokio::test]
async fn what_a_hook_was_given_in_confidence_is_neither_told_nor_kept_however_it_says_it() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &hook(&bench, SAY_ALL, file(&bench, "token", &format!("{IN_A_FILE}\n"), 0o600)));
    let mut texts = Vec::new();
    let ended = loop {
        match next(&mut reports).await {
            HookUpdate::Ended(ended) => break ended,
            news => texts.push(("progress".to_owned(), format!("{news:?}"))),
        }
    };
    let HookOutcome::Failed(reason) = ended else { panic!("{ended}") };
    assert!(reason.starts_with("asked at 5432 with 7q8: *** *** *** ***"), "{reason}");
    assert!(texts.iter().any(|(_, text)| text.contains("***, ***, ***")), "{texts:?}");
    texts.push(("the reason".to_owned(), reason));
    for entry in fs::read_dir(bench.attempt()).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(IN_A_FILE), "{}", path.display());
        // The request with its secrets is stored in this file, for the supervisor.
        if !path.ends_with("request.json") {
            texts.push((path.display().to_string(), text));
        }
    }
    for part in PARTS {
        for (place, text) in &texts {
            assert!(!text.contains(part), "{part} stands in {place}: {text}");
        }
    }
    let printed = bench.printed("stdout");
    for seen in ["PORT=5432\n", "PIN=7q8\n", "PASSWORD=***\n", "TOKEN=***\n", "progress: of ***\n", "{\"KEY\":\"***\"}"]
    {
        assert!(printed.contains(seen), "{seen}: {printed}");
    }
}

#[tokio::test]
async fn a_secret_in_a_file_is_read_at_each_attempt_with_the_rights_of_the_replica() {
    let say = "[ \"$TOKEN\" = \"$(cat $BENCH/expected)\" ]";
    for token in ["one-token", "another"] {
        let bench = Bench::new();
        file(&bench, "expected", token, 0o644);
        let mut hook = hook(&bench, say, file(&bench, "token", token, 0o600));
        if nix::unistd::geteuid().is_root() {
            fs::set_permissions(bench.folder.path(), Permissions::from_mode(0o755)).unwrap();
            hook.user = Some("nobody".into());
        }
        let (runner, mut reports) = bench.open();
        runner.run(&task(), &hook);
        assert_eq!(end(&mut reports).await, HookOutcome::Done, "{}", bench.printed("stderr"));
    }
}

/// The reason for not starting a hook with a secret file prepared like this.
async fn refused(prepare: impl FnOnce(&Bench) -> PathBuf) -> String {
    let bench = Bench::new();
    let token = prepare(&bench);
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &hook(&bench, "echo $TOKEN >&2; touch $BENCH/begun; exit 1", token));
    let ended = end(&mut reports).await;
    assert!(!bench.path("begun").exists(), "{ended}");
    let HookOutcome::Blocked(why) = ended else { panic!("{ended}") };
    assert!(!why.contains(IN_A_FILE), "{why}");
    why
}

#[tokio::test]
async fn a_secret_that_others_read_or_could_exchange_is_refused_with_what_to_do() {
    let open = refused(|bench| file(bench, "open", IN_A_FILE, 0o644)).await;
    assert!(open.contains("open can be read by every user") && open.contains("chmod o= it"), "{open}");
    let writable = refused(|bench| file(bench, "writable", IN_A_FILE, 0o662)).await;
    assert!(writable.contains("chmod o-w it"), "{writable}");
    let missing = refused(|bench| bench.path("missing")).await;
    assert!(missing.contains("missing: No such file"), "{missing}");
    let long = refused(|bench| file(bench, "long", &IN_A_FILE.repeat(1_000), 0o600)).await;
    assert!(long.contains("long: is longer than 8 KiB"), "{long}");
    let folder = refused(|bench| bench.folder.path().to_owned()).await;
    assert!(folder.contains("is not a regular file"), "{folder}");
    if !crate::left_out::is_root() {
        return;
    }
    let strange = refused(|bench| {
        let path = file(bench, "strange", IN_A_FILE, 0o600);
        chown(&path, Some(65_531), None).unwrap();
        path
    });
    let strange = strange.await;
    assert!(strange.contains("strange belongs to uid 65531"), "{strange}");
    let link = refused(|bench| {
        let (path, link) = (file(bench, "own", IN_A_FILE, 0o600), bench.path("link"));
        symlink(path, &link).unwrap();
        lchown(&link, Some(65_531), None).unwrap();
        link
    });
    let link = link.await;
    assert!(link.contains("link belongs to uid 65531"), "{link}");
    let leads = refused(|bench| {
        let (path, link) = (file(bench, "strange", IN_A_FILE, 0o600), bench.path("link"));
        chown(&path, Some(65_531), None).unwrap();
        symlink(path, &link).unwrap();
        link
    });
    let leads = leads.await;
    assert!(leads.contains("strange belongs to uid 65531"), "{leads}");
}
