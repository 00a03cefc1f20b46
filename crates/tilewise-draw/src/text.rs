//! Numbers and lists in readable form.

use tilewise::ByteSize;

/// `1,264`
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `1,264 rows`
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Units of bytes, each 1024 times the previous one.
pub(crate) const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// `296.02 MiB`
pub(crate) fn bytes(count: u128) -> String {
    ByteSize(u64::try_from(count).unwrap_or(u64::MAX)).to_string()
}

/// Foreign text without characters that terminals interpret or documents can't contain.
pub(crate) fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// `2,3`
pub(crate) fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// `(2,3)`, with an ellipsis in the middle if it is long.
pub(crate) fn tuple<T: ToString>(items: &[T]) -> String {
    const LONGEST: usize = 12;
    if items.len() <= LONGEST {
        return format!("({})", list(items));
    }
    format!("({},…,{})", list(&items[..3]), list(&items[items.len() - 3..]))
}

/// An index that fits a cell: `2,3`, or its last components behind an ellipsis.
pub(crate) fn short_index(index: &[u64]) -> String {
    const LONGEST: usize = 14;
    if index.is_empty() {
        return "()".to_owned();
    }
    let whole = list(index);
    if index.len() <= LONGEST && whole.len() <= LONGEST {
        return whole;
    }
    let mut text = String::new();
    for component in index.iter().rev() {
        let longer = if text.is_empty() { component.to_string() } else { format!("{component},{text}") };
        if longer.len() > LONGEST - 2 && !text.is_empty() {
            break;
        }
        text = longer;
    }
    format!("…,{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_indices() {
        assert_eq!((grouped(7), grouped(1264), grouped(1_000_000)), ("7".into(), "1,264".into(), "1,000,000".into()));
        assert_eq!((counted(1, "row"), counted(2000, "row")), ("1 row".into(), "2,000 rows".into()));
        assert_eq!((short_index(&[]), short_index(&[2, 3])), ("()".into(), "2,3".into()));
        assert_eq!(short_index(&[1, 6, 7, 10, 9, 1000, 4]), "…,10,9,1000,4");
        assert_eq!((bytes(0), bytes(1023), bytes((1 << 20) - 1)), ("0 B".into(), "1023 B".into(), "1.00 MiB".into()));
        assert_eq!(shown("a\x1b[1m"), "a\u{fffd}[1m");
        assert_eq!(tuple(&[0; 100]), "(0,0,0,…,0,0,0)");
    }
}
