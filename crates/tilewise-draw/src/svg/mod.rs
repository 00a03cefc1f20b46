//! A picture as an SVG document.

mod style_sheet;

use crate::{
    Scene, Theme,
    figure::{
        Figure,
        class::{Class, HATCH_SPACING, HATCH_WIDTH, Style},
        mark::{Anchor, Group, Mark, Rect, Text},
    },
    grid::{CellContent, Kind},
    text::list,
};
use std::fmt::{self, Write as _};

pub(crate) fn write(scene: &Scene, theme: Theme) -> String {
    let figure = Figure::of(scene);
    let mut svg = String::new();
    // Writing to a string can't fail.
    let _ = document(&mut svg, scene, &figure, theme);
    svg
}

fn document(svg: &mut String, scene: &Scene, figure: &Figure<'_>, theme: Theme) -> fmt::Result {
    let (width, height) = (N(figure.size.0), N(figure.size.1));
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tw\" role=\"img\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">"
    )?;
    writeln!(svg, "<title>{}</title>", Escaped(&scene.title.replace('\n', ", ")))?;
    let headings: Vec<&str> = scene.panels.iter().map(|panel| panel.heading.as_str()).collect();
    let described = format!("{} {}", scene.summary, headings.join(". "));
    writeln!(svg, "<desc>{}</desc>", Escaped(&described))?;
    writeln!(svg, "<style>{}</style>", style_sheet::css(theme))?;
    let (side, middle) = (N(HATCH_SPACING), N(HATCH_SPACING / 2.0));
    writeln!(
        svg,
        "<defs><pattern id=\"tw-padding\" width=\"{side}\" height=\"{side}\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect class=\"tw-blank\" width=\"{side}\" height=\"{side}\"/>\
         <path class=\"tw-hatch\" d=\"M{middle} 0v{side}\" stroke-width=\"{HATCH_WIDTH}\"/></pattern></defs>"
    )?;
    for group in &figure.groups {
        self::group(svg, group)?;
    }
    svg.push_str("</svg>\n");
    Ok(())
}

fn group(svg: &mut String, group: &Group<'_>) -> fmt::Result {
    if let Some(name) = group.panel {
        let (x, y) = group.corner;
        writeln!(svg, "<g data-panel=\"{name}\" transform=\"translate({} {})\">", N(x), N(y))?;
    }
    for mark in &group.marks {
        match mark {
            Mark::Rect(mark) => rect(svg, mark)?,
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
    if group.panel.is_some() {
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
    if let Class::Cell(None) | Class::Swatch(None) = rect.class {
        svg.push_str(" fill=\"url(#tw-padding)\"");
    }
    svg.push_str("/>\n");
    Ok(())
}

/// The data attributes of a cell.
fn data(svg: &mut String, content: &CellContent) -> fmt::Result {
    if let Some(index) = &content.index {
        write!(svg, " data-index=\"{}\"", list(index))?;
    }
    if let Some(offset) = content.offset {
        write!(svg, " data-offset=\"{offset}\"")?;
    }
    match content.kind {
        Kind::Element => {}
        Kind::Padding => svg.push_str(" data-padding=\"tile\""),
        Kind::Tail => svg.push_str(" data-padding=\"tail\""),
    }
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
        _ if matches!(text.style, Style::Cell | Style::Note) => None,
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

/// A coordinate with as few decimals as it needs.
struct N(f64);

impl fmt::Display for N {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 10.0).round() / 10.0)
    }
}

/// Text in which nothing is markup.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
