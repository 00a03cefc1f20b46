//! Line prefixes of loggers, schedulers and people.

/// Maximum number of prefixes of a line.
const MOST: usize = 8;

/// The line without its prefixes: blanks, times, levels, processes, places in source files, quotation and comment
/// marks, bullets.
pub(crate) fn without_noise(line: &str) -> &str {
    let mut rest = line;
    for _ in 0..MOST {
        let start = rest.trim_start_matches([' ', '\t', '│', '┃', '|']);
        match KINDS.iter().find_map(|kind| kind(start)).filter(|length| *length > 0) {
            Some(length) => rest = &start[length..],
            None => return start,
        }
    }
    rest
}

/// Each gives the length of a prefix of its kind that a text begins with.
const KINDS: [fn(&str) -> Option<usize>; 8] = [glog, time, level, process, place, rank, repeated_mark, bullet];

/// Steps over bytes of a text.
struct Cursor<'a>(&'a [u8], usize);

impl Cursor<'_> {
    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.0.get(self.1) == Some(&byte)).then(|| self.1 += 1)
    }

    fn run(&mut self, least: usize, most: usize, of: fn(&u8) -> bool) -> Option<usize> {
        let count = self.0[self.1..].iter().take(most).take_while(|byte| of(byte)).count();
        self.1 += count;
        (count >= least).then_some(count)
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<usize> {
        self.run(least, most, u8::is_ascii_digit)
    }

    /// `10:21:07`, with a fraction.
    fn clock(&mut self) -> Option<()> {
        self.digits(2, 2)?;
        self.eat(b':')?;
        self.digits(2, 2)?;
        self.eat(b':')?;
        self.digits(2, 2)?;
        if self.eat(b'.').or_else(|| self.eat(b',')).is_some() {
            self.digits(1, 9)?;
        }
        Some(())
    }

    fn blanks(&mut self) -> usize {
        self.run(0, 64, |byte| matches!(byte, b' ' | b'\t')).unwrap_or(0)
    }

    /// `path/file.cc:2826`
    fn file_and_line(&mut self) -> Option<()> {
        self.run(1, 256, |byte| byte.is_ascii_alphanumeric() || b"_./-<>".contains(byte))?;
        self.eat(b':')?;
        self.digits(1, 7)?;
        Some(())
    }
}

/// `E0528 07:02:44.350251   27487 file.cc:2826] `
fn glog(text: &str) -> Option<usize> {
    let mut at = Cursor(text.as_bytes(), 0);
    at.run(1, 1, |byte| b"IWEFD".contains(byte))?;
    at.digits(4, 8)?;
    at.run(1, 1, |byte| *byte == b' ')?;
    at.clock()?;
    at.blanks();
    at.digits(0, 18);
    at.blanks();
    at.file_and_line()?;
    at.eat(b']')?;
    Some(at.1)
}

/// `2024-06-24 17:01:13.936447: E path/file.cc:2732] `, `[2026-05-12T10:00:00Z] `, `10:00:00.123 - `, `05-12 10:00:00 `
fn time(text: &str) -> Option<usize> {
    let mut at = Cursor(text.as_bytes(), 0);
    let bracket = at.eat(b'[').is_some();
    let mut date = Cursor(at.0, at.1);
    let is_dated = date.digits(2, 4).is_some()
        && date.eat(b'-').or_else(|| date.eat(b'/')).is_some()
        && date.digits(2, 2).is_some()
        && (date.eat(b'-').or_else(|| date.eat(b'/')).is_none() || date.digits(2, 2).is_some())
        && date.run(1, 1, |byte| matches!(byte, b' ' | b'T')).is_some();
    if is_dated {
        at = date;
    }
    at.clock()?;
    if at.eat(b'Z').is_none() && at.run(1, 1, |byte| matches!(byte, b'+')).is_some() {
        at.run(2, 5, |byte| byte.is_ascii_digit() || *byte == b':')?;
    }
    if bracket {
        at.eat(b']')?;
    }
    at.run(0, 3, |byte| matches!(byte, b':' | b' ' | b'-'));
    // A level of one letter, and a place.
    let mut place = Cursor(at.0, at.1);
    let has_place = place.run(1, 1, |byte| b"IWEFD".contains(byte)).is_some()
        && place.blanks() > 0
        && {
            place.digits(0, 18);
            place.blanks();
            place.file_and_line().is_some()
        }
        && place.eat(b']').is_some();
    Some(if has_place { place.1 } else { at.1 })
}

/// `ERROR `, `WARNING - `, `INFO:tensorflow:`
fn level(text: &str) -> Option<usize> {
    const LEVELS: [&str; 8] = ["ERROR", "WARNING", "WARN", "INFO", "DEBUG", "CRITICAL", "FATAL", "TRACE"];
    let bracket = usize::from(text.starts_with('['));
    let rest = &text[bracket..];
    let level = LEVELS.iter().find(|level| rest.starts_with(**level))?;
    let after = &rest[level.len()..];
    let logger = after.strip_prefix(':').map_or(0, |name| {
        let length = name.bytes().take(64).take_while(|byte| byte.is_ascii_lowercase() || b"_.".contains(byte)).count();
        if name[length..].starts_with(':') { length + 2 } else { 1 }
    });
    let end =
        after[logger..].bytes().take(4).take_while(|byte| matches!(byte, b' ' | b'-' | b']' | b':' | b'|')).count();
    (logger + end > 0).then_some(bracket + level.len() + logger + end)
}

/// `(EngineCore_DP0 pid=927827) `, `(pid=, ip=10.68.3.4) `, `(train_step pid=1, ip=10.0.0.2) `
fn process(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('(')?;
    let end = inside.bytes().take(128).position(|byte| matches!(byte, b')' | b'\n'))?;
    (inside[..end].contains("pid=") && inside.as_bytes()[end] == b')').then_some(end + 2)
}

/// `[tpu_worker.py:420] `, `file.cc:2826] `, `:2152] `, `5] `: also the rest of a place that was cut.
fn place(text: &str) -> Option<usize> {
    let mut at = Cursor(text.as_bytes(), 0);
    at.eat(b'[');
    let mut file = Cursor(at.0, at.1);
    if file.file_and_line().is_some() {
        at = file;
    } else {
        at.eat(b':');
        at.digits(1, 7)?;
    }
    at.eat(b']')?;
    at.run(1, 1, |byte| *byte == b' ')?;
    Some(at.1)
}

/// `[rank0]: `, `[process 2] `, `[0]: `, `0: `
fn rank(text: &str) -> Option<usize> {
    let mut at = Cursor(text.as_bytes(), 0);
    if at.eat(b'[').is_some() {
        let word = ["rank", "process ", "worker-", "host ", ""].into_iter().find(|word| text[1..].starts_with(word))?;
        at.1 += word.len();
        at.digits(1, 6)?;
        at.eat(b']')?;
        at.eat(b':');
        return Some(at.1);
    }
    at.digits(1, 4)?;
    at.eat(b':')?;
    at.run(1, 1, |byte| *byte == b' ')?;
    Some(at.1)
}

/// `> `, `# `, `// `
fn repeated_mark(text: &str) -> Option<usize> {
    let mark = ['>', '#', '/'].into_iter().find(|mark| text.starts_with(*mark))?;
    let count = text.len() - text.trim_start_matches(mark).len();
    let after = text.as_bytes().get(count);
    let ends = after.is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n')) || mark == '>';
    (ends && !(mark == '/' && count == 1)).then_some(count)
}

/// `- `, `* `, `• `
fn bullet(text: &str) -> Option<usize> {
    ["- ", "* ", "• ", "→ "].into_iter().find(|bullet| text.starts_with(bullet)).map(str::len)
}

#[cfg(test)]
mod tests {
    use super::without_noise;

    #[test]
    fn prefixes_of_all_kinds() {
        for prefix in [
            "",
            "   ",
            "E0528 07:02:44.350251   27487 file.cc:2826] ",
            "(pid=, ip=10.68.9.4) I0320 03:59:34.722540 855 deepsea_compiler_backend.cc:2163] ",
            "2024-06-24 17:01:13.936447: E external/xla/xla/pjrt/client.cc:2732] ",
            "(EngineCore_DP0 pid=1000001) INFO 12-11 07:05:18 [tpu_worker.py:420] ",
            "[2026-05-12T10:00:00.123Z] [rank3]: ",
            "ERROR:absl:",
            "INFO:tensorflow:",
            "2023-03-23 02:02:25,057 - WARNING - ",
            "> > ",
            ">",
            "# ",
            "    // ",
            "  - ",
            "(pid=, ip=10.68.9.4) :2152] ",
            "(pid=, ip=10.68.3.4) 5] ",
            "| ",
            "W1021 10:50:47.566938   75669 hlo_rematerialization.cc:3204] ",
        ] {
            let line = format!("{prefix}Used 1.00G\n");
            assert_eq!(without_noise(&line), "Used 1.00G\n", "{prefix}");
        }
        for kept in
            ["1. Size: 4.0K", "E0101: x", "args[0] x", "f32[2]", "#allocation3", "-25.6GiB", "/a/b.py:3: W", "12 x", ""]
        {
            assert_eq!(without_noise(kept), kept);
        }
    }
}
