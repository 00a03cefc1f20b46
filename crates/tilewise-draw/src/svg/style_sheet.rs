//! The style sheet: colours are in classes only, so that the viewer's colour scheme can change them.

use crate::{
    Theme,
    figure::class::{Class, Fill, Part, Style},
    palette::{Color, DARK, LIGHT, Palette, TILES},
};
use std::{borrow::Cow, fmt::Write as _};

pub(super) fn class(class: Class) -> Cow<'static, str> {
    Cow::Borrowed(match class {
        Class::Background => "tw-background",
        Class::Cell(None) => "tw-c tw-pad",
        Class::Cell(Some(tile)) => return Cow::Owned(format!("tw-c tw-{tile}")),
        Class::Swatch(None) => "tw-hatch tw-pad",
        Class::Swatch(Some(tile)) => return Cow::Owned(format!("tw-{tile}")),
        Class::Accent => "tw-accent",
        Class::Tile => "tw-tile",
        Class::OpenTile => "tw-open",
        Class::Inner => "tw-inner",
        Class::Deepest => "tw-deepest",
        Class::Outline => "tw-outline",
        Class::Joined => "tw-joined",
        Class::JoinedMiddle => "tw-joined-middle",
        Class::Bracket => "tw-bracket",
        Class::Extent => "tw-extent",
        Class::Link => "tw-link",
        Class::MovedLink => "tw-moved-link",
        Class::Rail => "tw-rail",
        Class::Ring => "tw-ring",
        Class::Halo => "tw-halo",
        Class::Part(Part::Owner(number)) => return Cow::Owned(format!("tw-{number}")),
        Class::Part(Part::Other) => "tw-other",
        Class::Part(Part::Resident) => "tw-resident",
        Class::Block(Part::Owner(number)) => return Cow::Owned(format!("tw-c tw-{number}")),
        Class::Block(Part::Other) => "tw-c tw-other",
        Class::Block(Part::Resident) => "tw-c tw-resident",
        Class::Padded => "tw-padded",
        Class::Crest => "tw-crest",
        Class::Peak => "tw-peak",
        Class::Limit => "tw-limit",
    })
}

pub(super) fn style(style: Style) -> &'static str {
    match style {
        Style::Title => "tw-title",
        Style::Heading => "tw-heading",
        Style::Text => "",
        Style::Aside => "tw-muted",
        Style::Label => "tw-label",
        Style::Cell => "tw-cell",
        Style::Note => "tw-note",
        Style::Byte => "tw-byte",
    }
}

/// The rules of the picture with this id, for some classes of shapes beside those of texts and tiles.
pub(super) fn css(id: &str, theme: Theme, shapes: &[Class]) -> String {
    let mut css = format!("#{id}{{stroke-linecap:square}}");
    let _ = write!(
        css,
        "#{id} text{{font-family:Inter,system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:{}px}}",
        Style::Text.size()
    );
    for style in [Style::Title, Style::Heading, Style::Label, Style::Cell, Style::Note, Style::Byte] {
        let _ = write!(css, "#{id} .{}{{font-size:{}px", self::style(style), style.size());
        css.push_str(if style.is_strong() { ";font-weight:600}" } else { "}" });
    }
    let _ = write!(
        css,
        "#{id} .tw-cell,#{id} .tw-note,#{id} .tw-byte,#{id} .tw-middle{{text-anchor:middle}}#{id} .tw-end{{text-anchor:end}}"
    );
    for &shape in shapes {
        if let Some((_, width)) = shape.stroke() {
            let _ = write!(css, "#{id} .{}{{fill:none;stroke-width:{width}", class(shape));
            if let Some(dashes) = shape.dashes() {
                let _ = write!(css, ";stroke-dasharray:{dashes};stroke-linecap:butt");
            }
            css.push('}');
        }
    }
    let _ = write!(css, "#{id} .tw-pad{{fill:url(#{id}-padding)}}");
    if shapes.contains(&Class::Padded) {
        let _ = write!(css, "#{id} .{}{{fill:url(#{id}-stripes)}}", class(Class::Padded));
    }
    // Marks over a cell leave it the pointer.
    let over = ["text", "path", ".tw-halo", ".tw-ring", ".tw-padded"].map(|over| format!("#{id} {over}"));
    let _ = write!(css, "{}{{pointer-events:none}}", over.join(","));
    match theme {
        Theme::Auto => {
            css.push_str(&colors(id, &LIGHT, shapes));
            let _ = write!(css, "@media (prefers-color-scheme:dark){{{}}}", colors(id, &DARK, shapes));
        }
        Theme::Light => css.push_str(&colors(id, &LIGHT, shapes)),
        Theme::Dark => css.push_str(&colors(id, &DARK, shapes)),
    }
    css
}

fn colors(id: &str, palette: &Palette, shapes: &[Class]) -> String {
    let mut css = String::new();
    let mut rule = |selector: &str, property: &str, color: Color| {
        let [r, g, b] = palette.rgb(color);
        let _ = write!(css, "#{id} {selector}{{{property}:#{r:02x}{g:02x}{b:02x}}}");
    };
    rule("text", "fill", Style::Text.color());
    for text in [Style::Cell, Style::Note, Style::Byte, Style::Label, Style::Aside] {
        rule(&format!(".{}", style(text)), "fill", text.color());
    }
    rule(".tw-blank", "fill", Color::Padding);
    rule(".tw-c", "stroke", Color::Hairline);
    rule(".tw-hatch", "stroke", Color::Hatch);
    for &shape in shapes {
        let selector = format!(".{}", class(shape));
        if let Fill::Plain(color) = shape.fill() {
            rule(&selector, "fill", color);
        }
        if shape.fill() == Fill::Striped {
            rule(".tw-stripe", "stroke", Color::Background);
        }
        if let Some((color, _)) = shape.stroke() {
            rule(&selector, "stroke", color);
        }
    }
    for tile in 0..TILES {
        rule(&format!(".{}", class(Class::Swatch(Some(tile)))), "fill", Color::Tile(tile));
    }
    css
}
