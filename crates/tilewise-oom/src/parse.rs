//! From a text to the message it holds: surroundings are removed, headlines found, and the fullest message read.

use crate::clean;
use crate::error::Error;
use crate::framework::Framework;
use crate::headline;
use crate::list;
use crate::message::{Form, Message};
use crate::other;
use crate::tables::{Output, Persistent, Requirement, Usage};

impl Message {
    /// Reads the message that a text holds.
    ///
    /// # Errors
    ///
    /// [`Error`], if it holds none; its text says what is looked for.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = clean::clean(text);
        let starts = headline::find_all(&text);
        let mut best: Option<(Self, (usize, usize))> = None;
        let mut previous = 0;
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(text.len());
            let message = Self::of_chunk(&text[previous..start], &text[start..end], true);
            previous = start;
            if message.used.is_none() && !headline::is_telling(&text[start..]) {
                continue;
            }
            let figures = [&message.used, &message.limit, &message.exceeded];
            let score = (message.entries.len(), figures.into_iter().flatten().count());
            if best.as_ref().is_none_or(|(_, least)| score > *least) {
                best = Some((message, score));
            }
        }
        let message = best.map(|(message, _)| message).or_else(|| Self::excerpt(&text)).or_else(|| other::read(&text));
        let mut message = message.ok_or_else(|| Error::of(&text))?;
        message.framework = Framework::of(&text);
        Ok(message)
    }

    /// Tables and lists alone.
    fn excerpt(text: &str) -> Option<Self> {
        let message = Self::of_chunk("", text, false);
        let is_list = message.entries.iter().any(|entry| entry.label.is_some() || entry.shape.is_some());
        (is_list || message.requirement.is_some() || message.usage.is_some()).then_some(message)
    }

    /// `before` is the text since the previous headline.
    fn of_chunk(before: &str, text: &str, has_headline: bool) -> Self {
        let mut message = Self { code: headline::code(before, text), ..Self::new(Form::Excerpt) };
        let after = if has_headline { headline::read(text, &mut message) } else { 0 };
        if message.form == Form::RunTime {
            message.module = headline::loaded_program(before);
        }
        let body = text.get(after..).unwrap_or("");
        let list = list::read(body);
        let tables = &body[..list.start];
        message.usage = message.usage.or_else(|| Usage::read(tables));
        message.persistent = Persistent::read_all(tables);
        message.output = Output::read(tables);
        message.requirement = Requirement::read(tables);
        let is_closed = list.entries.last().is_some_and(|entry| entry.complete);
        message.entries.extend(list.entries);
        // Newer messages say so at their end; of others, the last entry's last line must do.
        let is_ended = list.ended || (message.code.is_none() && is_closed);
        let needs_end = message.form == Form::Assignment;
        message.truncated = !(headline::is_whole(&message) && (is_ended || !needs_end));
        if message.memory_space.is_none() {
            message.memory_space = list::memory_space(body);
        }
        message
    }
}
