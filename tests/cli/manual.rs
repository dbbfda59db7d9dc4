//! `allclear completions`, `allclear man`, and examples below the help.

use std::process::Command;

use super::{allclear, program, stderr, stdout};

/// Every command that is not hidden, as the help lists the commands.
fn commands() -> Vec<String> {
    let help = allclear(&["--help"], &[]);
    let listed =
        stdout(&help).lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed.filter_map(|line| line.split_whitespace().next()).map(Into::into).collect()
}

#[test]
fn bash_completes_a_command_and_its_options() {
    let script = allclear(&["completions", "bash"], &[]);
    assert_eq!((script.status.code(), stderr(&script)), (Some(0), ""));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("completion");
    std::fs::write(&path, stdout(&script)).unwrap();
    let completed = |words: &str, at: usize| {
        let asks = format!(
            "source {} && COMP_WORDS=({words}) && COMP_CWORD={at} && _allclear allclear \"${{COMP_WORDS[{at}]}}\" \
             \"${{COMP_WORDS[{at}-1]}}\" && echo \"${{COMPREPLY[@]}}\"",
            path.display()
        );
        let output = Command::new("bash").args(["--noprofile", "--norc", "-c", &asks]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim().to_owned()
    };
    assert_eq!(completed("allclear expl", 1), "explain");
    assert_eq!(completed("allclear events --li", 2), "--limit");
    assert!(!completed("allclear ''", 1).contains("supervise"), "what replicas start is not for people");
}

#[test]
fn every_shell_has_a_completion() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = allclear(&["completions", shell], &[]);
        assert_eq!(script.status.code(), Some(0), "{shell}");
        assert!(stdout(&script).contains("explain"), "{shell}");
    }
}

#[test]
fn the_manual_page_names_every_command_and_each_has_a_page() {
    let page = allclear(&["man"], &[]);
    assert_eq!((page.status.code(), stderr(&page)), (Some(0), ""));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    let written = allclear(&["man", "--out", out.to_str().unwrap()], &[]);
    assert_eq!((written.status.code(), stderr(&written)), (Some(0), ""));
    assert!(commands().len() > 20, "{:?}", commands());
    for command in commands().into_iter().filter(|command| command != "help") {
        let name = format!("allclear\\-{}(1)", command.replace('-', "\\-"));
        assert!(stdout(&page).contains(&name), "{name} is missing:\n{}", stdout(&page));
        let own = std::fs::read_to_string(out.join(format!("allclear-{command}.1"))).unwrap();
        assert!(own.contains(".SH SYNOPSIS") && own.contains("\\-\\-help"), "{command}: {own}");
    }
    let explain = std::fs::read_to_string(out.join("allclear-explain.1")).unwrap();
    assert!(explain.contains("Examples:"), "{explain}");
    assert!(!out.join("allclear-supervise.1").exists(), "what replicas start is not for people");
    let names = Command::new(program()).args(["man", "--out", "/dev/null/nowhere"]).output().unwrap();
    assert_eq!(names.status.code(), Some(1), "{}", stderr(&names));
}

#[test]
fn the_first_help_and_the_manual_page_say_what_to_type_at_night() {
    let page = stdout(&allclear(&["man"], &[])).replace('\\', "");
    for told in [stdout(&allclear(&["--help"], &[])), stderr(&allclear(&[], &[])), &page] {
        assert!(told.contains("\nWhen Azure announces maintenance of a VM:\n"), "{told}");
        assert!(told.contains("allclear explain "), "{told}");
    }
}

#[test]
fn what_operators_type_has_examples() {
    let commands = "status events explain watch hold release pause resume approve skip drill doctor completions man";
    for command in commands.split(' ') {
        let help = allclear(&[command, "--help"], &[]);
        assert!(stdout(&help).contains(&format!("\n  allclear {command}")), "{command}: {}", stdout(&help));
    }
}
