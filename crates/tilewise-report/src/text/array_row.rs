//! Rows of padded arrays for people, two to four lines each: sizes, source line and causes.

use crate::findings::cause as cause_in_words;
use crate::style::{FAINT, bytes, cut, line_of, listed, styled, times, waste_style};
use std::io::{self, Write};
use tilewise_audit::{Cause, SourceLine};

/// One array, as `audit` and `explain` print it.
pub(crate) struct Row<'a> {
    /// `None` where the array can't be sized.
    pub(crate) padding: Option<u64>,
    /// Its size, as text: computed bytes, or a printed size.
    pub(crate) takes: String,
    pub(crate) expansion: f64,
    pub(crate) shape: String,
    pub(crate) who: String,
    /// The framework's name of the operation.
    pub(crate) op_name: Option<&'a str>,
    pub(crate) causes: &'a [Cause],
}

const INDENT: usize = 6;

pub(crate) fn write_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>10}  {:>6}  shape", "padding", "takes", "times")))
}

impl Row<'_> {
    pub(crate) fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let padding = self.padding.map_or_else(|| "-".to_owned(), bytes);
        let expansion = self.padding.map_or_else(|| "-".to_owned(), |_| times(self.expansion));
        let numbers = format!("  {padding:>10}  {:>10}  {expansion:>6}", self.takes);
        let room = width.saturating_sub(count(&numbers) + 2);
        let style = waste_style(self.expansion);
        // An array's shape is whole, if on a line of its own: a layout that is cut is useless.
        if count(&self.shape) > room && !self.is_tuple() {
            writeln!(out, "{}\n      {}", styled(style, numbers), self.shape)?;
        } else {
            writeln!(out, "{}  {}", styled(style, numbers), cut(&self.shape, room))?;
        }
        let room = width.saturating_sub(INDENT);
        for line in self.places(room).iter().filter(|line| !line.is_empty()) {
            writeln!(out, "      {}", cut(line, room))?;
        }
        for cause in self.causes {
            writeln!(out, "      {}", styled(FAINT, cut(&cause_in_words(cause), width.saturating_sub(INDENT))))?;
        }
        Ok(())
    }

    fn is_tuple(&self) -> bool {
        self.shape
            .trim_start_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, ' ' | '×'))
            .starts_with('(')
    }

    /// The maker of the array, on one line or, with a long name of the operation, on two.
    fn places(&self, room: usize) -> Vec<String> {
        let Some(op_name) = self.op_name else { return vec![self.who.clone()] };
        let line = format!("{}  {op_name}", self.who);
        if count(&line) <= room { vec![line] } else { vec![self.who.clone(), cut_operation(op_name, room)] }
    }
}

/// `model.py:439  fusion.6`, with the line of a library that it leads to.
pub(crate) fn who(source: Option<&SourceLine>, name: &str) -> String {
    let parts = [source.map(line_of), Some(name.to_owned()).filter(|name| !name.is_empty())];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// An operation's name without the compiled function, and if that is still too long, without some of its middle: the
/// modules around it and the operation itself stay.
fn cut_operation(name: &str, columns: usize) -> String {
    if count(name) <= columns {
        return name.to_owned();
    }
    let words: Vec<&str> = name.split('/').skip(1).collect();
    let Some((last, modules)) = words.split_last() else { return cut(name, columns) };
    let left_out = |kept: usize| if kept < modules.len() { "…/" } else { "" };
    // The columns for each number of modules, the most last.
    let mut columns_of = vec![count("…/") + count(last)];
    for word in modules {
        columns_of.push(columns_of[columns_of.len() - 1] + count(word) + 1);
    }
    let mut kept = (0..=modules.len()).rev();
    match kept.find(|kept| columns_of[*kept] + count(left_out(*kept)) <= columns) {
        Some(kept) => {
            let modules: String = modules[..kept].iter().map(|word| format!("{word}/")).collect();
            format!("…/{modules}{}{last}", left_out(kept))
        }
        None => cut(name, columns),
    }
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// An instruction with the place in its result, `fusion.6{0,1}`.
pub(crate) fn name(instruction: &str, shape_index: &[usize]) -> String {
    match shape_index {
        [] => instruction.to_owned(),
        path => format!("{instruction}{{{}}}", listed(path)),
    }
}
