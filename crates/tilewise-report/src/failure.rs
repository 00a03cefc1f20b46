//! The error of one item for people: a message, with a caret under the text.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::ops::Range;
use tilewise::visible_lines;
use tilewise_audit::Failure;

/// Bytes of the input shown around the error.
const SHOWN: usize = 160;

/// For people: the message, the text with a caret, the help. Styled; the stream removes styles it can't show.
/// Characters of the text that a terminal would obey are [made visible](visible_lines).
#[must_use]
pub fn failure_text(failure: &Failure, input: &str) -> String {
    let title = Level::ERROR.primary_title(visible_lines(&failure.message)).id(failure.kind);
    let mut group = match failure.span.clone().and_then(|span| excerpt(input, [span.start, span.end])) {
        Some((text, span)) => {
            let [before, wrong, after] =
                [&text[..span.start], &text[span.clone()], &text[span.end..]].map(visible_lines);
            let span = before.len()..before.len() + wrong.len();
            let text = [before, wrong, after].concat();
            title.element(Snippet::source(text).fold(false).annotation(AnnotationKind::Primary.span(span)))
        }
        None => Group::with_title(title),
    };
    if let Some(help) = &failure.help {
        group = group.element(Level::HELP.message(visible_lines(help)));
    }
    Renderer::styled().render(&[group])
}

/// The part of the input around a span, on one line and on character boundaries, and the span within it.
///
/// `None` where the span is not inside the input.
///
/// ```
/// assert_eq!(tilewise_report::excerpt("f32[2]\nb16[2,3]", [7, 10]), Some(("b16[2,3]", 0..3)));
/// ```
#[must_use]
pub fn excerpt(input: &str, [start, end]: [usize; 2]) -> Option<(&str, Range<usize>)> {
    input.get(start..end)?;
    let line = input[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let from = floor(input, start.saturating_sub(SHOWN / 2).max(line));
    let line_end = input[start..].find('\n').map_or(input.len(), |newline| start + newline);
    let to = floor(input, (from + SHOWN).min(line_end).max(start));
    Some((&input[from..to], start - from..end.clamp(start, to) - from))
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_stay_on_the_line_and_on_characters() {
        let long = format!("{}é{}", "x".repeat(300), "y".repeat(300));
        let (text, span) = excerpt(&long, [300, 302]).expect("inside");
        assert_eq!(&text[span], "é");
        assert!(text.len() <= SHOWN);
        let (text, span) = excerpt("ab\ncd\nef", [3, 4]).expect("inside");
        assert_eq!((text, span), ("cd", 0..1));
        assert_eq!(excerpt("ab", [2, 2]).expect("the end"), ("ab", 2..2));
        assert_eq!(excerpt("ab", [1, 9]), None);
    }
}
