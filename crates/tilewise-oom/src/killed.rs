//! Processes that were killed, by the word of a shell or a launcher, and sentences on a host whose memory runs out.

use crate::facts::{Fact, FactValue, Facts};
use crate::form::Form;
use crate::message::Message;
use crate::prose;
use crate::text::{tail, word};

/// Bytes of prose that are searched.
const SEARCHED: usize = 256 << 10;

/// Words of launchers on a process that was killed.
const KILLED: [&str; 17] = [
    "is killed by signal: Killed",
    "exited with code 137",
    "code=137",
    "code -9",
    "code is 137",
    "exit code 137",
    "exit status 137",
    "exit 137",
    "exitcode: -9",
    "exitcode -9",
    "return code = -9",
    "signal: killed",
    "kernel appears to have died",
    "SIGKILL",
    "OOMKilled",
    "OOM killed",
    "OOM-killed",
];

/// Words of sentences on a process that was killed.
const TOLD: [&str; 8] =
    ["\"Killed\"", "`Killed`", "'Killed'", "gets killed", "got killed", "is killed", "was killed", "get killed"];

/// Words of what ends processes for lack of memory.
const FOR_MEMORY: [&str; 6] =
    ["OOM killer", "OOM-killer", "oom-killer", "due to memory pressure", "low on resource: memory", "OOM-kills"];

/// Words of a sentence by which memory was the reason of a kill.
const OF_MEMORY: [&str; 6] =
    ["more memory than is available", "out of ram", "all the ram", "ram is full", "ram bar", "ram fills"];

/// A shell's word on a process that was killed, or a launcher's: `Killed`, `run.sh: line 3: 17 Killed   python x.py`,
/// `17 Killed   python x.py`, `zsh: killed …`.
pub(crate) fn by_launcher(text: &str) -> Option<Message> {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    // `Killed (8 x 41 GB)`
    let is_with_figure = |line: &str| prose::words(line).contains(&"Killed") && has_figure(&line.to_ascii_lowercase());
    let is_of_shell = |line: &str| {
        let line = line.trim();
        let mut behind_number = line.split_whitespace().skip_while(|word| !is_number(word)).skip(1);
        matches!(line, "Killed" | "Killed: 9")
            || KILLED.iter().chain(&FOR_MEMORY).chain(&TOLD).any(|words| line.contains(words))
            || line.starts_with("zsh: killed ")
            || is_with_figure(line)
            || (line.contains(": line ") || line.starts_with(|first: char| first.is_ascii_digit()))
                && behind_number.next() == Some("Killed")
    };
    // A launcher that writes of memory has seen the limit of the container.
    let is_of_group = |line: &str| line.contains("OOMKilled") || line.contains("OOM") && line.contains("ontainer");
    text.lines().find(|line| is_of_shell(line)).map(|_| {
        let lower = tail(text, SEARCHED).to_ascii_lowercase();
        let is_told = FOR_MEMORY.iter().any(|words| text.contains(words))
            || OF_MEMORY.iter().any(|words| lower.contains(words))
            || text.lines().any(is_with_figure)
            || prose::tells(&lower, &[&["kill"], &["out of memory", "out-of-memory"]], &["?"])
            || prose::sentences(&lower).any(runs_out);
        let name = if text.lines().any(|line| is_of_shell(line) && is_of_group(line)) {
            Some("group")
        } else {
            (!is_told).then_some("shell")
        };
        let fact = name.map(|name| Fact { name, value: FactValue::Text("Killed".to_owned()) });
        of_host(fact)
    })
}

/// A sentence on a host whose memory runs out, with figures, or beside code that tells why: `The host memory grows with
/// num_workers, until the VM crashes.`
pub(crate) fn in_prose(text: &str) -> Option<Message> {
    let lower = tail(text, SEARCHED).to_ascii_lowercase();
    let has_code = ["num_workers=", ".append(", "+= "].iter().any(|sign| lower.contains(sign));
    let is_told = |sentence: &str| runs_out(sentence) && (has_code || has_figure(sentence));
    prose::sentences(&lower).any(is_told).then(|| Message { is_retold: true, ..of_host(None) })
}

fn of_host(fact: Option<Fact>) -> Message {
    let mut message = Message::new(Form::Host);
    (message.truncated, message.facts) = (false, Facts(fact.into_iter().collect()));
    message.memory_space = Some("host".to_owned());
    message
}

/// Whether a sentence, in lower case, tells of a host whose memory runs out.
fn runs_out(sentence: &str) -> bool {
    const MEMORY: [&str; 8] =
        ["host memory", "cpu memory", "system memory", "host ram", "cpu ram", "ram usage", "system ram", "cpu mem "];
    const ENDS: [&str; 6] = ["out of memory", "runs out", "ran out", " full", "exhaust", "used up"];
    const GROWS: [&str; 5] = ["grows", "goes up", "climbs", "increases", "increasing"];
    let has = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
    has(&MEMORY) && (has(&ENDS) || has(&GROWS) && sentence.contains("until"))
}

/// Whether a sentence has a size of memory: `335 GB`.
fn has_figure(sentence: &str) -> bool {
    let is_unit = |word: &str| {
        ["tb", "tib", "gb", "gib", "g"].contains(&word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
    };
    word::all(sentence).any(|(start, end)| {
        let (before, word) = (sentence[..start].trim_end(), &sentence[start..end]);
        is_unit(word)
            && (word.starts_with(|c: char| c.is_ascii_digit()) || before.ends_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_killed_processes() {
        let facts =
            |text: &str| by_launcher(text).map(|message| (message.facts.has("shell"), message.facts.has("group")));
        assert_eq!(facts("python train.py\nKilled\n"), Some((true, false)));
        assert_eq!(facts("Reason: OOMKilled"), Some((false, true)));
        assert_eq!(
            facts("The RAM bar goes up to 16 GB.\nprocess 0 terminated with signal SIGKILL"),
            Some((false, false))
        );
        assert_eq!(facts("the kernel's OOM killer ended it"), Some((false, false)));
        for told in [
            "Killed (4 x 90 GB)",
            "It fails on a VM with 2TB of memory (Killed).",
            "SIGKILL, since it is out of memory.",
        ] {
            assert_eq!(facts(told), Some((false, false)), "{told}");
        }
        assert_eq!(facts("SIGKILL: is it out of memory?"), Some((true, false)));
        assert_eq!(facts("It is done."), None);
    }

    #[test]
    fn sentences_on_hosts() {
        assert!(in_prose("The VM hangs, its host RAM full at 335GB.").is_some());
        assert!(in_prose("CPU memory usage increases until the VM dies at 440 GiB.").is_some());
        for none in ["the host RAM is 335 GB", "GPU memory full at 80GB", "the host RAM is full", "é 8g"] {
            assert!(in_prose(none).is_none(), "{none}");
        }
    }
}
