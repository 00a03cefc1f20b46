//! The width of text, and line breaks.

/// Advance widths of the bundled font's ASCII, in thousandths of the size.
const WIDTHS: [u16; 95] = [
    281, 278, 403, 631, 638, 812, 639, 222, 362, 362, 500, 659, 280, 460, 276, 357, 625, 464, 605, 636, 642, 608, 624,
    571, 616, 624, 276, 280, 659, 659, 659, 507, 936, 676, 651, 727, 719, 598, 587, 743, 740, 264, 543, 652, 562, 889,
    753, 761, 635, 761, 639, 638, 642, 741, 676, 949, 642, 665, 625, 362, 357, 362, 469, 452, 497, 564, 621, 558, 621,
    582, 361, 609, 591, 237, 237, 544, 237, 869, 585, 597, 609, 609, 372, 523, 364, 581, 557, 812, 540, 557, 541, 362,
    327, 362, 659,
];

/// Viewers without the font use another one, wider by about this factor at most.
const ALLOWANCE: f64 = 1.05;

/// The factor by which strong text may be wider: other fonts' bold is wider than the bundled one's.
const STRONG: f64 = 1.14;

/// The width of a line of strong text.
pub(crate) fn strong_width(text: &str, size: f64) -> f64 {
    STRONG * width(text, size)
}

/// [`wrap`] for strong text.
pub(crate) fn wrap_strong(text: &str, size: f64, most: f64) -> Vec<String> {
    wrap(text, size, most / STRONG)
}

/// The width of a line of text.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text.chars().map(|c| u32::from(advance(c))).sum();
    f64::from(thousandths) / 1000.0 * size * ALLOWANCE
}

fn advance(c: char) -> u16 {
    let at = (c as usize).wrapping_sub(32);
    WIDTHS.get(at).copied().unwrap_or(850)
}

/// Lines no wider than `most`, broken at spaces, or behind a comma or bracket if a word alone is too wide.
pub(crate) fn wrap(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for piece in pieces(paragraph) {
            if !line.is_empty() && width(&line, size) + width(piece.trim_end(), size) > most {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            line.push_str(piece);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// The text cut where a line may end: behind spaces; in long words, behind punctuation and at the latest after some
/// characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    const LONG: usize = 24;
    text.split_inclusive(' ').flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let long = rest.chars().count() > LONG;
            let end = if long {
                let mut ends = rest.char_indices().map(|(at, c)| (at + c.len_utf8(), c));
                let stop = ends.clone().skip(LONG / 3).find(|(_, c)| matches!(c, ',' | ')' | ']' | ':'));
                let stop = stop.map(|(at, _)| at).filter(|&at| at <= 4 * LONG);
                stop.or_else(|| ends.nth(LONG - 1).map(|(at, _)| at))
            } else {
                None
            };
            let (piece, left) = rest.split_at(end.unwrap_or(rest.len()));
            rest = left;
            Some(piece)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_words_and_long_shapes() {
        assert_eq!(wrap("one two three", 10.0, 45.0), ["one two", "three"]);
        let shape = format!("f32[{}]", vec!["1"; 100].join(","));
        let lines = wrap(&shape, 10.0, 300.0);
        assert!(lines.iter().all(|line| width(line, 10.0) <= 300.0), "{lines:?}");
        assert_eq!(lines.concat(), shape);
        assert_eq!(wrap("", 10.0, 10.0), [""]);
    }
}
