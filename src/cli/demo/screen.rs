//! Where the demo is watched: lines as they come, and on a terminal a board below them that is drawn anew.

use std::io::{self, IsTerminal as _, Write as _};

/// Up to the board's first line, and everything from there on away.
const ERASE: &str = "\x1b[J";
/// A line that is too long is cut, not broken: a broken one would be two to go up over.
const NO_WRAP: (&str, &str) = ("\x1b[?7l", "\x1b[?7h");

#[derive(Clone, Copy)]
pub(super) enum Colour {
    Bold,
    Faint,
    Green,
    Yellow,
    Red,
}

pub(super) struct Screen {
    to_stderr: bool,
    is_live: bool,
    has_colours: bool,
    /// Lines of the board that stand at the end.
    drawn: usize,
}

impl Screen {
    pub(super) fn new(to_stderr: bool, colours_refused: bool) -> Self {
        let is_live = if to_stderr { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        Self { to_stderr, is_live, has_colours: is_live && !colours_refused, drawn: 0 }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.show(&[line.to_owned()], &[]);
    }

    /// New lines to stay, and the board as it is now.
    pub(super) fn show(&mut self, news: &[String], board: &[String]) {
        let text = self.composed(news, board);
        self.write(&text);
    }

    fn composed(&mut self, news: &[String], board: &[String]) -> String {
        let mut text = String::new();
        if self.drawn > 0 {
            text = format!("\x1b[{}A\r{ERASE}", self.drawn);
        }
        for line in news {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = 0;
        if self.is_live && !board.is_empty() {
            text.push_str(NO_WRAP.0);
            for line in board {
                text.push_str(line);
                text.push('\n');
            }
            text.push_str(NO_WRAP.1);
            self.drawn = board.len();
        }
        text
    }

    pub(super) fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => "1",
            Colour::Faint => "2",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn write(&self, text: &str) {
        // Where nobody looks any more, nothing is lost.
        if self.to_stderr {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        } else {
            let mut out = io::stdout().lock();
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(is_live: bool, has_colours: bool) -> Screen {
        Screen { to_stderr: true, is_live, has_colours, drawn: 0 }
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_board_takes_the_place_of_the_one_before_it_below_what_is_new() {
        let mut screen = screen(true, false);
        assert_eq!(screen.composed(&lines(&["a"]), &lines(&["b", "c"])), "a\n\x1b[?7lb\nc\n\x1b[?7h");
        assert_eq!(screen.composed(&lines(&["d"]), &lines(&["e"])), "\x1b[2A\r\x1b[Jd\n\x1b[?7le\n\x1b[?7h");
        assert_eq!(screen.composed(&[], &[]), "\x1b[1A\r\x1b[J");
        assert_eq!(screen.composed(&lines(&["f"]), &[]), "f\n");
    }

    #[test]
    fn what_is_no_terminal_gets_plain_lines_and_no_board() {
        let mut screen = screen(false, false);
        assert_eq!(screen.composed(&lines(&["a"]), &lines(&["b"])), "a\n");
        assert_eq!(screen.composed(&[], &lines(&["b"])), "");
    }

    #[test]
    fn colours_are_left_out_where_they_are_refused() {
        assert_eq!(screen(true, true).paint(Colour::Red, "a"), "\x1b[31ma\x1b[0m");
        assert_eq!(screen(true, false).paint(Colour::Red, "a"), "a");
    }
}
