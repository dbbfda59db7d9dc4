//! Tests of the folding to the terminal's width, and of control characters.

use super::*;

fn on(width: usize, colours: bool) -> TextBuilder {
    TextBuilder::new(Terminal { size: Some((width, 20)), colours })
}

#[test]
fn a_line_is_folded_between_words_and_goes_on_at_its_indent() {
    let mut page = on(30, false);
    page.line(2, &[plain("one two three four five six seven eight")]);
    page.entry(2, "why", 6, &[plain("because it is as it is and was")]);
    assert_eq!(
        page.into_text(),
        "  one two three four five six\n  seven eight\n  why   because it is as it is\n        and was\n"
    );
}

#[test]
fn what_is_no_terminal_or_too_narrow_gets_whole_lines() {
    let text = "word ".repeat(40).trim_end().to_owned();
    for paper in [Terminal::PLAIN, Terminal { size: Some((5, 5)), colours: false }] {
        let mut page = TextBuilder::new(paper);
        page.line(0, &[plain(&text)]);
        assert_eq!(page.into_text(), format!("{text}\n"));
    }
}

#[test]
fn a_word_that_is_longer_than_the_line_is_left_to_the_terminal() {
    let mut page = on(30, false);
    page.line(0, &[plain("a"), plain(" "), bold("x".repeat(50)), plain(" b")]);
    assert_eq!(page.into_text(), format!("a\n{}\nb\n", "x".repeat(50)));
}

#[test]
fn columns_stand_below_each_other_and_the_last_is_folded() {
    let rows = [vec![plain("NAME"), plain("WHAT")], vec![plain("db-10"), plain("reachable and healthy all day long")]];
    let mut page = on(30, false);
    page.table(0, &rows);
    assert_eq!(page.into_text(), "NAME   WHAT\ndb-10  reachable and healthy\n       all day long\n");
    let mut narrow = on(30, false);
    let wide = [vec![plain("a".repeat(21)), plain("b"), plain("c c c c")]];
    narrow.table(0, &wide);
    assert_eq!(narrow.into_text(), format!("{} b c c c\n  c\n", "a".repeat(21)));
}

#[test]
fn wide_letters_count_twice() {
    let mut page = TextBuilder::new(Terminal::PLAIN);
    page.table(0, &[vec![plain("数据库"), plain("x")], vec![plain("db"), plain("y")]]);
    assert_eq!(page.into_text(), "数据库  x\ndb      y\n");
}

#[test]
fn colours_stand_only_where_they_are_wanted() {
    let line = [red("no no"), plain(" yes")];
    let mut page = on(80, true);
    page.line(0, &line);
    assert_eq!(page.into_text(), "\x1b[1;31mno\x1b[0m \x1b[1;31mno\x1b[0m yes\n");
    let mut page = on(80, false);
    page.line(0, &line);
    assert_eq!(page.into_text(), "no no yes\n");
}

#[test]
fn no_text_from_outside_moves_the_cursor_or_turns_a_line_around() {
    let mut page = on(80, true);
    page.line(0, &[plain("a\x1b[2J\u{202e}b\nc\td\u{7f}\u{200b}e\u{9b}31m")]);
    assert_eq!(page.into_text(), "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}\u{fffd}e\u{fffd}31m\n");
}

#[test]
fn a_number_is_not_parted_from_its_unit() {
    let mut page = on(30, false);
    page.line(0, &[plain("it is stopped at last, then 12:00:00 UTC, in 1 min 59 s")]);
    assert_eq!(page.into_text(), "it is stopped at last, then\n12:00:00 UTC, in 1 min 59 s\n");
    let mut page = on(30, false);
    page.line(0, &[plain("it is stopped at its end, in 59 s; or 5 times")]);
    assert_eq!(page.into_text(), "it is stopped at its end, in\n59 s; or 5 times\n");
}
