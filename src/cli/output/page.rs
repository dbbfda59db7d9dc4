//! Text for people: lines that fit the terminal, aligned columns, and colours where the terminal has colours.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use unicode_width::UnicodeWidthStr as _;

use allclear_server::config;
use allclear_server::replica::sanitize::sanitize;

/// Minimum width of readable text; in a narrower terminal the terminal itself folds the lines.
const NARROWEST: usize = 30;
/// Width between two columns.
const GAP: usize = 2;

/// A piece of text in one colour, as a terminal numbers colours. The text may come from any source: only visible
/// characters reach the terminal.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Span {
    colour: &'static str,
    text: String,
}

fn span(colour: &'static str, text: impl AsRef<str>) -> Span {
    Span { colour, text: sanitize(text.as_ref()) }
}

pub(in crate::cli) fn plain(text: impl AsRef<str>) -> Span {
    span("", text)
}

pub(in crate::cli) fn bold(text: impl AsRef<str>) -> Span {
    span("1", text)
}

pub(in crate::cli) fn faint(text: impl AsRef<str>) -> Span {
    span("2", text)
}

pub(in crate::cli) fn green(text: impl AsRef<str>) -> Span {
    span("32", text)
}

pub(in crate::cli) fn yellow(text: impl AsRef<str>) -> Span {
    span("33", text)
}

pub(in crate::cli) fn red(text: impl AsRef<str>) -> Span {
    span("1;31", text)
}

/// The output: its size, and whether colours are used.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Terminal {
    /// Columns and rows of the terminal; `None` where the output is no terminal, and lines are not folded.
    pub(in crate::cli) size: Option<(usize, usize)>,
    pub(in crate::cli) colours: bool,
}

impl Terminal {
    pub(in crate::cli) const PLAIN: Self = Self { size: None, colours: false };

    pub(in crate::cli) fn of_stdout() -> Self {
        if !io::stdout().is_terminal() {
            return Self::PLAIN;
        }
        let size = terminal_size::terminal_size_of(io::stdout());
        Self {
            size: size.map(|(width, height)| (width.0.into(), height.0.into())),
            colours: !config::colours_refused(),
        }
    }
}

/// Text under construction.
pub(in crate::cli) struct TextBuilder {
    paper: Terminal,
    text: String,
}

impl TextBuilder {
    pub(in crate::cli) fn new(paper: Terminal) -> Self {
        Self { paper, text: String::new() }
    }

    pub(in crate::cli) fn into_text(self) -> String {
        self.text
    }

    pub(in crate::cli) fn blank(&mut self) {
        self.text.push('\n');
    }

    pub(in crate::cli) fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.blank();
        }
        self.line(0, &[bold(text)]);
    }

    /// One line, folded between words where the line is too long for the terminal.
    pub(in crate::cli) fn line(&mut self, indent: usize, spans: &[Span]) {
        self.folded(indent, indent, spans);
    }

    /// A name, and its description in a column of its own.
    pub(in crate::cli) fn entry(&mut self, indent: usize, name: &str, column: usize, spans: &[Span]) {
        let mut all = vec![faint(format!("{name:<column$}"))];
        all.extend_from_slice(spans);
        self.folded(indent, indent + column, &all);
    }

    /// Text for copying, never folded.
    pub(in crate::cli) fn verbatim(&mut self, indent: usize, span: &Span) {
        let _ = write!(self.text, "{:indent$}", "");
        self.put(span.colour, &span.text);
        self.blank();
    }

    /// Rows of cells in columns. Where the columns do not fit, the last column is folded; where folding does not
    /// help, each row is written as text.
    pub(in crate::cli) fn table(&mut self, indent: usize, rows: &[Vec<Span>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.text.width())).max();
        let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
        let last = indent + widths.iter().rev().skip(1).map(|width| width + GAP).sum::<usize>();
        let fits = self.width().is_none_or(|width| last + NARROWEST / 2 <= width);
        for row in rows {
            let filled = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                let is_last = at + 1 == row.len();
                let pad = if is_last || !fits { 0 } else { width + GAP - cell.text.width() };
                let gap = usize::from(!is_last && !fits);
                Span { colour: cell.colour, text: format!("{}{:2$}", cell.text, "", pad + gap) }
            });
            let filled: Vec<Span> = filled.collect();
            self.folded(indent, if fits { last } else { indent + GAP }, &filled);
        }
    }

    fn width(&self) -> Option<usize> {
        self.paper.size.map(|(width, _)| width).filter(|width| *width >= NARROWEST)
    }

    /// Folds a line: the first line begins at the indent `first`, further lines at the indent `rest`.
    fn folded(&mut self, first: usize, rest: usize, spans: &[Span]) {
        let limit = self.width().unwrap_or(usize::MAX);
        let rest = rest.min(limit / 2);
        let mut column = first;
        let _ = write!(self.text, "{:first$}", "");
        // Blanks are written only before a word on the same line.
        let (mut blanks, mut at_the_start) = (0, true);
        for (colour, word) in words(spans) {
            if word.starts_with(' ') {
                blanks += word.len();
                continue;
            }
            let width = word.width();
            if !at_the_start && blanks > 0 && column + blanks + width > limit {
                let _ = write!(self.text, "\n{:rest$}", "");
                column = rest;
            } else {
                let _ = write!(self.text, "{:blanks$}", "");
                column += blanks;
            }
            (blanks, at_the_start) = (0, false);
            self.put(colour, word);
            column += width;
        }
        self.blank();
    }

    fn put(&mut self, colour: &str, text: &str) {
        if self.paper.colours && !colour.is_empty() {
            let _ = write!(self.text, "\x1b[{colour}m{text}\x1b[0m");
        } else {
            self.text.push_str(text);
        }
    }
}

/// Words, and the blanks between words, each in the colour of the span.
fn words(spans: &[Span]) -> impl Iterator<Item = (&str, &str)> {
    spans.iter().flat_map(|span| {
        let mut rest = span.text.as_str();
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = rest.find(|next: char| (next == ' ') != (first == ' ')).unwrap_or(rest.len());
            let end = end + with_its_unit(&rest[..end], &rest[end..]);
            let (word, after) = rest.split_at(end);
            rest = after;
            Some((span.colour, word))
        })
    })
}

/// Length of the unit behind a number, for a number and its unit stay together.
fn with_its_unit(word: &str, after: &str) -> usize {
    let Some(next) = after.strip_prefix(' ').filter(|_| word.ends_with(|last: char| last.is_ascii_digit())) else {
        return 0;
    };
    let unit = next.split(' ').next().unwrap_or_default();
    let is_unit = ["s", "ms", "min", "h", "d", "UTC"].contains(&unit.trim_end_matches([',', ';', ':', ')']));
    if is_unit { 1 + unit.len() } else { 0 }
}

#[cfg(test)]
mod tests;
