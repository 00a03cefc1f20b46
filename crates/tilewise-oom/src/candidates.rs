//! Finds the catalogue's sentences in a text, and groups them to messages.

use crate::code::{Code, Mention, mentioned};
use crate::facts::{Fact, Facts};
use crate::forms::{CATALOGUE, Rule, Sentence, rules};
use crate::text::word;

/// Maximum bytes between a message and a further sentence of it.
const NEAR: usize = 4096;

/// Maximum bytes from a code to its message: a name and perhaps a line end are between.
const NEAR_CODE: usize = 512;

/// Sentences that belong together.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) rule: &'static Rule,
    pub(crate) facts: Facts,
    pub(crate) code: Option<&'static str>,
    pub(crate) is_retold: bool,
    /// Start of the first sentence, and end of the last.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// End of the first sentence.
    pub(crate) first_end: usize,
    /// Whether it has a code, or a sentence that makes a message alone.
    pub(crate) is_open: bool,
    wordings: Vec<&'static str>,
}

/// A sentence at its place.
struct Found {
    sentence: &'static Sentence,
    start: usize,
    end: usize,
    facts: Vec<Fact>,
}

impl Candidate {
    fn new(rule: &'static Rule, start: usize, end: usize) -> Self {
        let (facts, wordings) = (Facts::default(), Vec::new());
        Self { rule, facts, code: None, is_retold: false, start, end, first_end: end, is_open: false, wordings }
    }

    /// Whether the sentence belongs to this message: it has the same form, is near, isn't said a second time, and
    /// contradicts no field.
    fn takes(&self, found: &Found) -> bool {
        let is_new = found.sentence.repeats || !self.wordings.contains(&found.sentence.wording);
        self.rule.form == found.sentence.rule.form
            && found.start.saturating_sub(self.end) <= NEAR
            && is_new
            && self.facts.agree(&found.facts)
    }

    fn take(&mut self, found: Found) {
        if !self.wordings.contains(&found.sentence.wording) {
            self.wordings.push(found.sentence.wording);
        }
        self.facts.extend(found.facts);
        self.is_open |= found.sentence.opens;
        self.is_retold |= found.sentence.is_retold;
        self.end = self.end.max(found.end);
    }

    /// Whether it is a message: it has a code, a sentence that suffices alone, or all fields that suffice together.
    pub(crate) fn is_message(&self) -> bool {
        let suffices = self.rule.suffices;
        self.is_open || !suffices.is_empty() && suffices.iter().all(|name| self.facts.has(name))
    }
}

/// The messages of a cleaned text, in its order.
pub(crate) fn read(text: &str) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut code: Option<(&'static Code, usize)> = None;
    let mut at = 0;
    while let Some((start, end)) = next_word(text, at) {
        at = end;
        let word = &text[start..end];
        if let Some((mention, how)) = mentioned(word, &text[end..]) {
            let is_of = |candidate: &&mut Candidate| candidate.rule.codes.contains(&mention.code);
            match candidates.last_mut().filter(is_of) {
                Some(candidate) if how == Mention::Link && candidate.code.is_none() => {
                    candidate.code = Some(mention.code)
                }
                Some(candidate) if how == Mention::Link && candidate.code == Some(mention.code) => {}
                _ => {
                    if let Some((other, place)) = code.replace((mention, start))
                        && other.code != mention.code
                    {
                        alone(&mut candidates, text, other, place);
                    }
                }
            }
        }
        let Some(found) = sentence(text, start, word, &candidates) else { continue };
        at = found.end;
        let before = candidates.iter_mut().rev().find(|candidate| candidate.rule.form == found.sentence.rule.form);
        if let Some(candidate) = before.filter(|candidate| candidate.takes(&found)) {
            candidate.take(found);
            continue;
        }
        // A second retelling in other words is about the same message.
        let sentence = found.sentence;
        if sentence.is_retold
            && !sentence.opens
            && candidates
                .iter()
                .any(|candidate| candidate.rule.form == sentence.rule.form && start - candidate.end.min(start) <= NEAR)
        {
            continue;
        }
        // Without a message before it, a sentence that only adds counts behind a code only.
        let is_coded = code.is_some_and(|(code, place)| is_near(found.sentence.rule, code, place, start));
        if found.sentence.only_adds && !is_coded {
            continue;
        }
        let mut candidate = Candidate::new(found.sentence.rule, found.start, found.end);
        if let Some((mention, place)) = code.filter(|_| is_coded) {
            (candidate.code, candidate.is_open, candidate.start) = (Some(mention.code), true, place);
            code = None;
        }
        candidate.take(found);
        candidates.push(candidate);
    }
    if let Some((mention, place)) = code {
        alone(&mut candidates, text, mention, place);
    }
    candidates.retain(Candidate::is_message);
    candidates
}

fn is_near(rule: &Rule, code: &Code, place: usize, start: usize) -> bool {
    rule.codes.contains(&code.code) && start.saturating_sub(place) <= NEAR_CODE
}

/// Handles a code without a sentence behind it: it belongs to the message before it, otherwise it is a message itself.
fn alone(candidates: &mut Vec<Candidate>, text: &str, code: &'static Code, place: usize) {
    let has = |candidate: &&mut Candidate| candidate.rule.codes.contains(&code.code);
    match candidates.iter_mut().rev().find(has) {
        Some(candidate) => candidate.code = candidate.code.or(Some(code.code)),
        None => {
            let Some(rule) = rules().find(|rule| rule.form == code.form) else { return };
            // `CompileTimeHbmOom` is longer than the code that it stands for.
            let word = text[place..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            let mut candidate = Candidate::new(rule, place, place + word);
            (candidate.code, candidate.is_open) = (Some(code.code), true);
            candidates.push(candidate);
        }
    }
}

fn next_word(text: &str, at: usize) -> Option<(usize, usize)> {
    word::all(&text[at..]).next().map(|(start, end)| (at + start, at + end))
}

/// The longest sentence that begins with this word; of equals, one of the form of the last message that isn't vague.
fn sentence(text: &str, start: usize, word: &str, candidates: &[Candidate]) -> Option<Found> {
    let last =
        candidates.iter().rev().map(|candidate| candidate.rule).find(|rule| !rule.is_vague()).map(|rule| rule.form);
    let matches = |sentence: &'static Sentence| {
        let (end, facts) = sentence.pattern.matches(text, start)?;
        Some(Found { sentence, start, end, facts })
    };
    let rank = |found: &Found| (found.end, last == Some(found.sentence.rule.form), found.sentence.opens);
    CATALOGUE.beginning_with(word).filter_map(matches).reduce(
        |best, other| {
            if rank(&other) > rank(&best) { other } else { best }
        },
    )
}
