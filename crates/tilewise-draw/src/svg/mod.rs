//! A picture as an SVG document.

mod style_sheet;

use crate::{
    Theme,
    figure::{
        Figure,
        class::{Class, HATCH_SPACING, HATCH_WIDTH, STRIPE_WIDTH, Style},
        mark::{Anchor, Group, Mark, Point, Rect, Text},
    },
    grid::{CellContent, Kind},
    text::{list, tuple},
};
use std::fmt::{self, Write as _};

pub(crate) fn write(figure: &Figure<'_>, theme: Theme) -> String {
    let (mut svg, mut marks) = (String::new(), String::new());
    // Writing to a string can't fail.
    let _ = figure.groups.iter().try_for_each(|group| self::group(&mut marks, group));
    let _ = document(&mut svg, figure, theme, &marks);
    svg
}

/// The document around its marks. Pages have many pictures: all rules and references are bound to this picture's id.
fn document(svg: &mut String, figure: &Figure<'_>, theme: Theme, marks: &str) -> fmt::Result {
    let (width, height) = (N(figure.size.0), N(figure.size.1));
    let id = id(&[&figure.title, theme_name(theme), marks]);
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"{id}\" class=\"tw\" role=\"img\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
    )?;
    writeln!(svg, "<title>{}</title>", Escaped(&figure.title))?;
    writeln!(svg, "<desc>{}</desc>", Escaped(&figure.description))?;
    let has = |some: &[Class]| figure.marks().any(|mark| mark.class().is_some_and(|class| some.contains(&class)));
    let of_plan = has(&Class::OF_PLAN);
    let mut shapes = Class::SINGLE.to_vec();
    for some in [&Class::OF_PLAN[..], &Class::OF_JOINED, &Class::OF_DEEPEST].into_iter().filter(|some| has(some)) {
        shapes.extend_from_slice(some);
    }
    writeln!(svg, "<style>{}</style>", style_sheet::css(&id, theme, &shapes))?;
    let (side, middle) = (N(HATCH_SPACING), N(HATCH_SPACING / 2.0));
    write!(
        svg,
        "<defs><pattern id=\"{id}-padding\" width=\"{side}\" height=\"{side}\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect class=\"tw-blank\" width=\"{side}\" height=\"{side}\"/>\
         <path class=\"tw-hatch\" d=\"M{middle} 0v{side}\" stroke-width=\"{HATCH_WIDTH}\"/></pattern>"
    )?;
    if of_plan {
        write!(
            svg,
            "<pattern id=\"{id}-stripes\" width=\"{side}\" height=\"{side}\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\">\
             <path class=\"tw-stripe\" d=\"M{middle} 0v{side}\" stroke-width=\"{STRIPE_WIDTH}\"/></pattern>"
        )?;
    }
    svg.push_str("</defs>\n");
    svg.push_str(marks);
    svg.push_str("</svg>\n");
    Ok(())
}

/// An id unique to the picture and the same each time it is drawn: a hash of its parts (FNV-1a).
fn id(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("tw-{:012x}", hash >> 16)
}

fn theme_name(theme: Theme) -> &'static str {
    match theme {
        Theme::Auto => "auto",
        Theme::Light => "light",
        Theme::Dark => "dark",
    }
}

fn group(svg: &mut String, group: &Group<'_>) -> fmt::Result {
    let (x, y) = group.corner;
    let is_placed = group.panel.is_some() || group.corner != (0.0, 0.0);
    if is_placed {
        svg.push_str("<g");
        if let Some(name) = group.panel {
            write!(svg, " data-panel=\"{name}\"")?;
        }
        writeln!(svg, " transform=\"translate({} {})\">", N(x), N(y))?;
    }
    for mark in &group.marks {
        match mark {
            Mark::Rect(mark) => rect(svg, mark)?,
            Mark::Areas(class, areas) => path(svg, *class, |d| areas.iter().try_for_each(|area| outline(d, area)))?,
            Mark::Lines(class, lines) => path(svg, *class, |d| {
                lines.iter().try_for_each(|line| {
                    let (x, y) = line.from;
                    write!(d, "M{} {}{}{}", N(x), N(y), if line.down { 'v' } else { 'h' }, N(line.length))
                })
            })?,
            Mark::Curves(class, curves) => path(svg, *class, |d| {
                curves.iter().try_for_each(|[(x, y), (ax, ay), (bx, by), (zx, zy)]| {
                    let [x, y, ax, ay, bx, by, zx, zy] = [x, y, ax, ay, bx, by, zx, zy].map(|at| N(*at));
                    write!(d, "M{x} {y}C{ax} {ay} {bx} {by} {zx} {zy}")
                })
            })?,
            Mark::Corner(class, (x, y), side) => {
                let (x, y, side) = (N(*x), N(*y), N(*side));
                path(svg, *class, |d| write!(d, "M{x} {y}h-{side}l{side} {side}z"))?;
            }
            Mark::Text(mark) => text(svg, mark)?,
        }
    }
    if is_placed {
        svg.push_str("</g>\n");
    }
    Ok(())
}

fn rect(svg: &mut String, rect: &Rect<'_>) -> fmt::Result {
    let ((x, y), (width, height)) = (rect.corner, rect.size);
    write!(svg, "<rect class=\"{}\"", style_sheet::class(rect.class))?;
    write!(svg, " x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", N(x), N(y), N(width), N(height))?;
    if rect.radius > 0.0 {
        write!(svg, " rx=\"{}\"", N(rect.radius))?;
    }
    if let Some(content) = rect.content {
        data(svg, content)?;
    }
    match rect.hint.clone().or_else(|| hint(rect.content?)) {
        Some(hint) => writeln!(svg, "><title>{}</title></rect>", Escaped(&hint)),
        None => writeln!(svg, "/>"),
    }
}

/// The text that a viewer shows on hovering a cell: its content and place.
fn hint(content: &CellContent) -> Option<String> {
    let mut hint = match (&content.index, content.kind) {
        (Some(index), _) => tuple(index),
        (None, Kind::Element) => return None,
        (None, Kind::Padding) => "padding".to_owned(),
        (None, Kind::Tail) => "padding behind the last tile".to_owned(),
    };
    if let Some(offset) = content.offset {
        let _ = write!(hint, " · offset {offset}");
    }
    if let Some((byte, bit)) = content.byte() {
        let _ = write!(hint, " · byte {byte}");
        let _ = if bit > 0 { write!(hint, ", bit {bit}") } else { Ok(()) };
    }
    if let Some(tile) = content.tile {
        let _ = write!(hint, " · tile {tile}");
    }
    Some(hint)
}

/// The data attributes of a cell.
fn data(svg: &mut String, content: &CellContent) -> fmt::Result {
    if let Some(index) = &content.index {
        write!(svg, " data-index=\"{}\"", list(index))?;
    }
    if let Some(offset) = content.offset {
        write!(svg, " data-offset=\"{offset}\"")?;
    }
    if let Some((byte, bit)) = content.byte() {
        write!(svg, " data-byte=\"{byte}\"")?;
        if bit > 0 {
            write!(svg, " data-bit=\"{bit}\"")?;
        }
    }
    if let Some(tile) = content.tile {
        write!(svg, " data-tile=\"{tile}\"")?;
    }
    match content.kind {
        Kind::Element => {}
        Kind::Padding => svg.push_str(" data-padding=\"tile\""),
        Kind::Tail => svg.push_str(" data-padding=\"tail\""),
    }
    Ok(())
}

/// A closed outline, with short commands for lines across or down.
fn outline(d: &mut String, points: &[Point]) -> fmt::Result {
    let Some((&(x, y), rest)) = points.split_first() else { return Ok(()) };
    write!(d, "M{} {}", N(x), N(y))?;
    let mut before = (x, y);
    for &(x, y) in rest {
        match (x == before.0, y == before.1) {
            (true, true) => {}
            (true, false) => write!(d, "V{}", N(y))?,
            (false, true) => write!(d, "H{}", N(x))?,
            (false, false) => write!(d, "L{} {}", N(x), N(y))?,
        }
        before = (x, y);
    }
    d.push('z');
    Ok(())
}

fn path(svg: &mut String, class: Class, data: impl FnOnce(&mut String) -> fmt::Result) -> fmt::Result {
    write!(svg, "<path class=\"{}\" d=\"", style_sheet::class(class))?;
    data(svg)?;
    svg.push_str("\"/>\n");
    Ok(())
}

fn text(svg: &mut String, text: &Text) -> fmt::Result {
    let (x, y) = (N(text.at.0), N(text.at.1));
    svg.push_str("<text");
    let style = Some(style_sheet::style(text.style)).filter(|name| !name.is_empty());
    let muted = text.muted.then_some("tw-muted");
    let anchor = match text.anchor {
        _ if matches!(text.style, Style::Cell | Style::Note | Style::Byte) => None,
        Anchor::Start => None,
        Anchor::Middle => Some("tw-middle"),
        Anchor::End => Some("tw-end"),
    };
    let classes: Vec<&str> = [style, muted, anchor].into_iter().flatten().collect();
    if !classes.is_empty() {
        write!(svg, " class=\"{}\"", classes.join(" "))?;
    }
    write!(svg, " x=\"{x}\" y=\"{y}\"")?;
    if text.size < text.style.size() {
        write!(svg, " style=\"font-size:{}px\"", N(text.size))?;
    }
    if text.upward {
        write!(svg, " transform=\"rotate(-90 {x} {y})\"")?;
    }
    writeln!(svg, ">{}</text>", Escaped(&text.text))
}

/// A coordinate, in tenths at most.
struct N(f64);

impl fmt::Display for N {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 10.0).round() / 10.0)
    }
}

/// Text with markup escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' | '\r' => f.write_char(c)?,
                // Characters that no document may contain.
                '\0'..' ' | '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
