//! Logs of any size: read in pieces, the end first, and parsed only where a message may be.

use crate::error::Error;
use crate::form::Form;
use crate::level::Level;
use crate::message::Message;
use crate::parse;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum bytes read at a time.
const PIECE: u64 = 4 << 20;

/// Smaller pieces are collected up to this size.
const LEAST: usize = 1 << 20;

/// Bytes at the end of a log that are read first: a program that died left its error there.
const TAIL: u64 = 1 << 20;

/// Bytes before and behind a sign that are parsed with it.
const BEFORE: usize = 4 << 10;
const AFTER: usize = 64 << 10;

/// A window of this size is parsed, even if it goes on; the next one overlaps its end, so that a message at the border
/// is whole in one of them.
const LARGEST_WINDOW: usize = 4 << 20;
const OVERLAP: usize = 128 << 10;

/// Once twice this number of messages is exceeded, this number is dropped: the least severe, and of equals the first.
const MOST: usize = 64;

/// Texts above this size are scanned for signs of messages before anything is parsed.
const LARGE: usize = 4 << 20;

/// Parts of words: every wording of a compiler that opens a message has one, as a test checks.
const SIGNS: [&str; 68] = [
    "assertion failed",
    "pthread_create",
    "start new",
    "serialize",
    "Constant folding",
    "Check failed",
    "protobuf size",
    "DNN library",
    "has not been",
    "Killed process",
    "not initialized",
    "cache_size",
    "emory",
    "EMORY",
    "lloc",
    "ALLOC",
    "xhausted",
    "EXHAUSTED",
    "permanent error",
    "ssignment",
    "base limit",
    "_bytes",
    "usage",
    "hbm",
    "vmem",
    "bytes_",
    "temporaries",
    "ttempting to",
    "oading program",
    "arameter",
    "ayout",
    "onat",
    "moved to host",
    "osaic",
    "allas",
    "atmul",
    "tiling",
    "indow params",
    "index in dimension",
    "hape cast",
    "legalize",
    "viable logical",
    "halted",
    "seq len",
    "matrix multiplication",
    "TPU kernel",
    "oom",
    "KV cache",
    "Buffer ",
    "Bad ",
    "full remat",
    "RET_CHECK",
    "use chunks",
    "Chunk State",
    "aligned to tiles",
    "reference output",
    "ioctl",
    " handle",
    "SMEM",
    "shared data",
    "convolution",
    "utotuning",
    "larger than max",
    "many open",
    "space left",
    "uota",
    "available RAM",
    "cuSolver",
];

static FINDERS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| SIGNS.iter().map(Finder::new).collect());

/// Finds the message in a log of any size, asking for one piece after the other.
///
/// The end is read first: if it has an error, nothing else is read. Memory is bounded by the pieces, and time is linear
/// in the log.
///
/// ```
/// use tilewise_oom::{Scanner, OomVerdict};
///
/// let log = "step 1\n".repeat(1 << 20) + "Attempting to reserve 9.62G at the bottom of memory. That was not possible. \
///            There are 7.14G free.\n" + &"done\n".repeat(1 << 19);
/// let mut scanner = Scanner::new(log.len() as u64);
/// while let Some(range) = scanner.wanted() {
///     scanner.take(&log.as_bytes()[range.start as usize..range.end as usize]);
/// }
/// assert_eq!(scanner.finish()?.verdict(), OomVerdict::Reservation);
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Debug)]
pub struct Scanner {
    /// The log's length; `None` for a stream.
    length: Option<u64>,
    state: State,
    /// Bytes read and not parsed: the beginning of a window, or of a possible one.
    carried: Vec<u8>,
    /// Number of carried bytes that were searched already.
    looked_at: usize,
    messages: Vec<Message>,
    /// The beginning of the text: without a message, the error tells whether it is empty or a program.
    first: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The end is wanted.
    Tail,
    /// The bytes from here on are wanted.
    From(u64),
    Done,
}

impl Scanner {
    /// A scanner for a log of `length` bytes with random access.
    #[must_use]
    pub fn new(length: u64) -> Self {
        let state = if length > PIECE { State::Tail } else { State::From(0) };
        let (carried, messages, first) = (Vec::new(), Vec::new(), String::new());
        Self { length: Some(length), state, carried, looked_at: 0, messages, first }
    }

    /// A scanner for a log that can be read only once, from front to back.
    #[must_use]
    pub fn stream() -> Self {
        Self { length: None, ..Self::new(0) }
    }

    /// The bytes to read next; `None` if no more are wanted.
    #[must_use]
    pub fn wanted(&self) -> Option<Range<u64>> {
        match (self.state, self.length) {
            (State::Done, _) => None,
            (State::Tail, length) => length.map(|length| length.saturating_sub(TAIL)..length),
            (State::From(start), None) => Some(start..start.saturating_add(PIECE)),
            (State::From(start), Some(length)) => {
                (start < length).then(|| start..length.min(start.saturating_add(PIECE)))
            }
        }
    }

    /// Takes the bytes that were [wanted](Self::wanted); fewer, or none, at the end of a stream.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.first.is_empty() {
            self.first = String::from_utf8_lossy(&bytes[..bytes.len().min(BEFORE)]).into_owned();
        }
        match self.state {
            State::Done => {}
            State::Tail => {
                let end = String::from_utf8_lossy(bytes);
                match Message::parse_whole(&end) {
                    Ok(message) if message.form.level() == Level::Error && is_whole_at_front(&message) => {
                        self.messages.push(message);
                        self.state = State::Done;
                    }
                    _ => self.state = State::From(0),
                }
            }
            State::From(start) => {
                let end = start + bytes.len() as u64;
                let is_last = bytes.is_empty() || self.length.is_some_and(|length| end >= length);
                self.state = if is_last { State::Done } else { State::From(end) };
                self.carried.extend_from_slice(bytes);
                // Small pieces are collected, so that no byte is searched many times.
                if is_last || self.carried.len() - self.looked_at >= LEAST {
                    self.windows(is_last);
                }
            }
        }
    }

    /// Parses the windows in the carried bytes, except one that goes on.
    fn windows(&mut self, is_last: bool) {
        let text = std::mem::take(&mut self.carried);
        let mut kept = if is_last { text.len() } else { text.len().saturating_sub(BEFORE) };
        for window in windows(&text) {
            if !is_last && window.end == text.len() {
                if window.len() < LARGEST_WINDOW {
                    kept = kept.min(window.start);
                    continue;
                }
                kept = kept.min(line_start(&text, text.len() - OVERLAP));
            }
            self.parse(&text[window]);
        }
        self.carried = text;
        self.carried.drain(..kept);
        self.looked_at = self.carried.len();
    }

    fn parse(&mut self, window: &[u8]) {
        let Ok(mut message) = Message::parse_whole(&String::from_utf8_lossy(window)) else { return };
        let others = std::mem::take(&mut message.others);
        // The most important one comes last.
        for message in others.into_iter().rev().chain([message]) {
            parse::add(&mut self.messages, message);
        }
        if self.messages.len() > 2 * MOST {
            self.messages.sort_by_key(|message| message.form.level());
            self.messages.drain(..MOST);
        }
    }

    /// The most important message, with the others.
    ///
    /// # Errors
    ///
    /// [`Error`], if the log has none.
    pub fn finish(self) -> Result<Message, Error> {
        parse::in_order(self.messages).ok_or_else(|| Error::of(&self.first))
    }
}

impl Message {
    /// Reads the message in a text; of several, the most important one, with the [`others`](Self::others).
    ///
    /// An error comes before a warning, a warning before a log; of two errors the last one in the text comes first,
    /// since the program went on after the other. Of a message that was printed several times, the fullest copy is
    /// kept.
    ///
    /// # Errors
    ///
    /// [`Error`], if the text has none; its text names the wordings that are looked for.
    ///
    /// ```
    /// use tilewise_oom::{Level, Message, OomVerdict};
    ///
    /// let log = "W hlo_rematerialization.cc:1363] Can't reduce memory use below 13.58GiB (14583876403 bytes) by \
    ///            rematerialization; only reduced to 15.22GiB (16339342336 bytes)
    /// Compilation failure: Ran out of memory in memory space hbm. Used 18.56G of 16.00G hbm.";
    /// let message = Message::parse(log)?;
    /// assert_eq!((message.verdict(), message.form.level()), (OomVerdict::Size, Level::Error));
    /// assert_eq!(message.others[0].verdict(), OomVerdict::RematLimit);
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() <= LARGE {
            return Self::parse_whole(text);
        }
        let mut scanner = Scanner::new(text.len() as u64);
        let at = |at| usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
        while let Some(range) = scanner.wanted() {
            scanner.take(&text.as_bytes()[at(range.start)..at(range.end)]);
        }
        scanner.finish()
    }
}

/// Whether the message can't have begun before the text that was read.
fn is_whole_at_front(message: &Message) -> bool {
    message.form != Form::Excerpt
        && message.form != Form::Other
        && !(message.entries.is_empty() && message.used.is_none())
}

/// Where messages may be: around each sign, on whole lines.
fn windows(text: &[u8]) -> Vec<Range<usize>> {
    // A file may be zeros for gigabytes: `copytruncate` of a log that goes on being written at its old place.
    if text.iter().all(|byte| *byte == 0) {
        return Vec::new();
    }
    let mut hits: Vec<usize> = Vec::new();
    for finder in FINDERS.iter() {
        let mut last = None;
        for hit in finder.find_iter(text) {
            // Of many close hits one is enough.
            if last.is_none_or(|last| hit - last > BEFORE / 2) {
                hits.push(hit);
                last = Some(hit);
            }
        }
    }
    hits.sort_unstable();
    let mut windows: Vec<Range<usize>> = Vec::new();
    for hit in hits {
        let start = line_start(text, hit.saturating_sub(BEFORE));
        let end = line_end(text, hit.saturating_add(AFTER).min(text.len()));
        match windows.last_mut() {
            Some(last) if start <= last.end && last.len() < LARGEST_WINDOW => last.end = last.end.max(end),
            Some(last) => {
                let start = if start > last.end { start } else { line_start(text, last.end - OVERLAP) };
                if last.end < end {
                    windows.push(start..end);
                }
            }
            None => windows.push(start..end),
        }
    }
    windows
}

/// Maximum bytes of a line; a longer one may be cut.
const LONGEST_LINE: usize = 64 << 10;

fn line_start(text: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(LONGEST_LINE);
    memchr::memrchr(b'\n', &text[from..at]).map_or(if from == 0 { 0 } else { at }, |end| from + end + 1)
}

fn line_end(text: &[u8], at: usize) -> usize {
    let most = text.len().min(at.saturating_add(LONGEST_LINE));
    memchr::memchr(b'\n', &text[at..most]).map_or(most, |end| at + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wording_has_a_sign() {
        let of_compilers = |wording: &&&str| !wording.starts_with('~');
        for wording in crate::forms::rules().flat_map(|rule| rule.opens).filter(of_compilers) {
            assert!(SIGNS.iter().any(|sign| wording.contains(sign)), "{wording}");
        }
    }

    #[test]
    fn windows_are_whole_lines() {
        let text = format!("{}a memory b\n{}", "x\n".repeat(9000), "y\n".repeat(90_000));
        let [window] = &windows(text.as_bytes())[..] else { panic!() };
        assert!(text[window.clone()].starts_with("x\n") && text[window.clone()].ends_with("y\n"));
        assert!(window.len() < BEFORE + AFTER + 32);
        assert!(windows(b"nothing").is_empty());
    }

    /// The result of a scan with pieces of at most `most` bytes.
    fn scanned(mut scanner: Scanner, text: &[u8], most: usize) -> Option<String> {
        while let Some(range) = scanner.wanted() {
            let start = usize::try_from(range.start).unwrap().min(text.len());
            let end = usize::try_from(range.end).unwrap().min(start.saturating_add(most)).min(text.len());
            scanner.take(&text[start..end]);
        }
        let message = scanner.finish().ok()?;
        Some(format!("{:?} {:?} {}", message.form, message.used.map(|used| used.bytes()), message.others.len()))
    }

    #[test]
    fn a_message_anywhere_is_found() {
        let message =
            "Attempting to reserve 1.00G at the bottom of memory. That was not possible. There are 7.00M free.\n";
        let warning = "Can't reduce memory use below 1.00GiB (1073741824 bytes) by rematerialization\n";
        let filler = "step 17: loss 3.125, one of many lines\n".repeat(115_000) + "memory 12.0GiB\n";
        for (before, after) in [(0, 0), (0, 1), (1, 0)] {
            let text = [warning, &filler.repeat(before), message, &filler.repeat(after)].concat();
            let length = text.len() as u64;
            let found = scanned(Scanner::new(length), text.as_bytes(), usize::MAX).unwrap();
            assert!(found.starts_with("RunTime Some(1073741824)"), "{found}");
        }
        for (before, after, most) in [(0, 1, usize::MAX), (1, 0, 99_991)] {
            let text = [warning, &filler.repeat(before), message, &filler.repeat(after)].concat();
            let found = scanned(Scanner::stream(), text.as_bytes(), most);
            assert_eq!(found.as_deref(), Some("RunTime Some(1073741824) 1"), "{before} {after} {most}");
        }
        assert_eq!(scanned(Scanner::stream(), b"nothing", 9), None);
        assert_eq!(scanned(Scanner::new(0), b"", 9), None);
    }
}
