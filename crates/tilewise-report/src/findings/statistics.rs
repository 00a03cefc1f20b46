//! Logs and statistics: nothing failed, and how much is left.

use super::{Words, words::printed};
use crate::style::bytes;
use tilewise_oom::{Facts, Form, Message, PrintedSize};

/// Advice if the text is the compiler's plan.
pub(super) fn audit() -> Words {
    Words::new("Audit the file: it says what owns the peak").code(None, "tilewise audit FILE")
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    match message.form {
        Form::AllocatorStatistics => allocator(message),
        Form::BufferAssignment => [
            "This is XLA's buffer assignment: a plan of the program's memory, not an error.".to_owned(),
            "Nothing in this text failed.".to_owned(),
        ],
        Form::ServerStatistics => server(message),
        _ => usage(message),
    }
}

fn usage(message: &Message) -> [String; 2] {
    let facts = &message.facts;
    let fact = |name| facts.size(name);
    let memories = [
        (message.memory_space.as_deref().unwrap_or("hbm"), message.used.as_ref(), message.limit.as_ref()),
        ("vmem", fact("vmem_used"), fact("vmem_limit")),
        ("smem", fact("smem_used"), fact("smem_limit")),
        ("cmem", fact("cmem_used"), fact("cmem_limit")),
    ];
    let pairs: Vec<(&str, &PrintedSize, &PrintedSize)> =
        memories.into_iter().filter_map(|(space, used, limit)| Some((space, used?, limit?))).collect();
    if pairs.is_empty() {
        let used = message.used.as_ref().map(|used| format!(" takes {} and", printed(used))).unwrap_or_default();
        return [
            format!("Nothing failed: the program{used} was compiled."),
            "This is the compiler's log of what a program takes.".to_owned(),
        ];
    }
    let fits = pairs.iter().map(|(space, used, limit)| format!("{} of {} in {space}", printed(used), printed(limit)));
    let left = pairs
        .iter()
        .map(|(space, used, limit)| format!("{} of {space}", bytes(limit.bytes().saturating_sub(used.bytes()))));
    [
        format!("It fits: {}.", fits.collect::<Vec<_>>().join(", ")),
        format!("Nothing in this text failed; {} are left.", left.collect::<Vec<_>>().join(" and ")),
    ]
}

fn allocator(message: &Message) -> [String; 2] {
    let facts: &Facts = &message.facts;
    let size = |name| facts.size(name);
    let in_words = |what: &str, size: Option<&PrintedSize>| size.map(|size| format!("{} {what}", printed(size)));
    let held = [
        in_words("in use", size("in_use")),
        in_words("reserved for programs", size("reserved").filter(|size| size.bytes() > 0)),
        in_words("in use at most", size("peak")),
    ];
    let held: Vec<String> = held.into_iter().flatten().collect();
    let of = message.limit.as_ref().map(|limit| format!(", of {}", printed(limit))).unwrap_or_default();
    let left = message.limit.as_ref().zip(message.used.as_ref());
    let left = left.map(|(limit, used)| limit.bytes().saturating_sub(used.bytes()));
    let piece = size("largest").map(|size| format!(", at most {} of it in one piece", printed(size)));
    let cause = match left {
        Some(left) => format!(
            "Nothing in this text failed; {} are left{}. The next program needs its temporaries in one piece of that.",
            bytes(left),
            piece.unwrap_or_default()
        ),
        None => "Nothing in this text failed.".to_owned(),
    };
    [format!("An allocator's statistics: {}{of}.", held.join(", ")), cause]
}

fn server(message: &Message) -> [String; 2] {
    let facts = &message.facts;
    let tokens = facts.number("tokens").zip(facts.size("cell")).zip(message.used.as_ref());
    let headline = match tokens {
        Some(((tokens, cell), used)) => {
            format!("A server's cache: {tokens} tokens of {} bytes take {}.", cell.bytes(), bytes(used.bytes()))
        }
        None => match facts.text("statistics") {
            Some(statistics) => format!("A server's memory: {statistics}."),
            None => "A server's log of its memory.".to_owned(),
        },
    };
    [headline, "Nothing in this text failed.".to_owned()]
}
