//! A scene as lines of text.

pub(crate) mod ansi;
mod table;

use crate::{
    Scene,
    grid::Edge,
    scene::{Sheet, Slider, Swatch},
    text::grouped,
};
use ansi::Ansi;

pub(crate) fn write(scene: &Scene, width: usize) -> String {
    let width = width.max(1);
    let ansi = Ansi::new(&scene.options);
    let sheets = scene.sheets.iter().map(|sheet| {
        let mut out = String::new();
        write_sheet(&mut out, sheet, &ansi, width);
        out
    });
    sheets.collect::<Vec<_>>().join("\n\n")
}

fn write_sheet(out: &mut String, sheet: &Sheet, ansi: &Ansi, width: usize) {
    let mut lines = |text: &str, style: &dyn Fn(&str) -> String| {
        for line in wrap(&ansi.plain(text), width) {
            out.push_str(&style(&line));
            out.push('\n');
        }
    };
    lines(&sheet.title, &|line| ansi.strong(line));
    lines(&sheet.summary, &|line| ansi.muted(line));
    for slider in &sheet.sliders {
        lines(&slider_text(slider, ansi), &|line| ansi.muted(line));
    }
    for panel in &sheet.panels {
        out.push('\n');
        for line in wrap(&ansi.plain(&panel.heading), width) {
            out.push_str(&ansi.strong(&line));
            out.push('\n');
        }
        table::write(out, &panel.grid, ansi, width);
    }
    let legend = legend(sheet, ansi);
    if !legend.is_empty() {
        out.push('\n');
        for line in legend_lines(&legend, ansi, width) {
            out.push_str(&ansi.muted(&line));
            out.push('\n');
        }
    }
    if !sheet.captions.is_empty() {
        out.push('\n');
    }
    for caption in &sheet.captions {
        for line in wrap(&ansi.plain(caption), width) {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

/// `dimension 0 (z) at 3 of size 4  ···●`
fn slider_text(slider: &Slider, ansi: &Ansi) -> String {
    const LONGEST: u64 = 16;
    let cells = slider.size.clamp(1, LONGEST);
    let scaled = u128::from(slider.at) * u128::from(cells) / u128::from(slider.size.max(1));
    let rail: String = (0..cells).map(|at| if u128::from(at) == scaled { ansi.mark() } else { ansi.dot() }).collect();
    let Slider { label, at, size } = slider;
    format!("{label} at {} of size {}  {rail}", grouped(*at), grouped(*size))
}

/// The items side by side if they fit; none is broken unless it is longer than a line.
fn legend_lines(items: &[String], ansi: &Ansi, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        let item = ansi.plain(item);
        match lines.last_mut().filter(|line| line.chars().count() + 3 + item.chars().count() <= width) {
            Some(line) => {
                line.push_str("   ");
                line.push_str(&item);
            }
            None => lines.extend(wrap(&item, width)),
        }
    }
    lines
}

fn legend(sheet: &Sheet, ansi: &Ansi) -> Vec<String> {
    let colored = ansi.is_colored();
    let [joined, tile, inner, deepest] =
        [Edge::Joined, Edge::Tile, Edge::Inner, Edge::Deepest].map(|edge| ansi.vertical(edge));
    let items = sheet.legend.iter().filter_map(|(swatch, text)| match swatch {
        Swatch::Tiles if colored => Some(format!("{tile} {}", sheet.per_color(text))),
        Swatch::Words if colored => Some(format!("{inner} {}", sheet.per_color(text))),
        Swatch::Runs if colored => Some(sheet.per_color(text)),
        Swatch::Tiles => Some(format!("{tile} {text}")),
        Swatch::OpenTile | Swatch::Unmarked => Some(text.clone()),
        Swatch::Joined => Some(format!("{joined} {text}")),
        Swatch::Inner | Swatch::Words => Some(format!("{inner} {text}")),
        Swatch::Deepest => Some(format!("{deepest} {text}")),
        Swatch::Padding => Some(format!("{} {text}", ansi.padding())),
        Swatch::Highlight => Some(format!("[ ] {text}")),
        // The words in the cells explain these.
        Swatch::Runs | Swatch::Moved => None,
    });
    items.collect()
}

/// Lines of at most that many characters, broken at spaces if there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut length = 0;
        for word in paragraph.split_inclusive(' ') {
            let needed = word.trim_end().chars().count();
            if length > 0 && length + needed > width {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                length = 0;
            }
            for c in word.chars() {
                if length == width {
                    lines.push(std::mem::take(&mut line).trim_end().to_owned());
                    length = 0;
                    if c == ' ' {
                        continue;
                    }
                }
                line.push(c);
                length += 1;
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_cuts_what_has_none() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\nb", 80), ["a", "b"]);
    }
}
