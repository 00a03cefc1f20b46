//! The style sheet: classes only, so that a reader's colour scheme can change them.

use crate::{
    Theme,
    palette::{DARK, LIGHT, Palette, Rgb},
};
use std::fmt::Write as _;

pub(crate) const TITLE: f64 = 17.0;
pub(crate) const HEADING: f64 = 13.0;
pub(crate) const TEXT: f64 = 12.5;
pub(crate) const LABEL: f64 = 11.5;
pub(crate) const CELL: f64 = 14.0;
pub(crate) const NOTE: f64 = 9.5;

/// The `<style>` element.
pub(crate) fn sheet(theme: Theme) -> String {
    let mut css = format!(
        ".tw text{{font-family:Inter,system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:{TEXT}px}}\
         .tw .tw-title{{font-size:{TITLE}px;font-weight:600}}\
         .tw .tw-heading{{font-size:{HEADING}px;font-weight:600}}\
         .tw .tw-label{{font-size:{LABEL}px}}\
         .tw .tw-cell{{font-size:{CELL}px;text-anchor:middle}}\
         .tw .tw-note{{font-size:{NOTE}px;text-anchor:middle}}\
         .tw .tw-middle{{text-anchor:middle}}.tw .tw-end{{text-anchor:end}}\
         .tw-tile,.tw-inner,.tw-link,.tw-moved-link,.tw-ring{{fill:none;stroke-linecap:square}}\
         .tw-tile{{stroke-width:2.8}}.tw-inner{{stroke-width:1.3}}\
         .tw-link{{stroke-width:1.2}}.tw-moved-link{{stroke-width:1.6}}\
         .tw-ring{{stroke-width:3.5}}.tw-halo{{fill:none;stroke-width:7}}"
    );
    match theme {
        Theme::Auto => {
            css.push_str(&colors(&LIGHT));
            let _ = write!(css, "@media (prefers-color-scheme:dark){{{}}}", colors(&DARK));
        }
        Theme::Light => css.push_str(&colors(&LIGHT)),
        Theme::Dark => css.push_str(&colors(&DARK)),
    }
    format!("<style>{css}</style>")
}

fn colors(palette: &Palette) -> String {
    let mut css = String::new();
    let mut rule = |selector: &str, property: &str, color: Rgb| {
        let [r, g, b] = color;
        let _ = write!(css, "{selector}{{{property}:#{r:02x}{g:02x}{b:02x}}}");
    };
    rule(".tw-background", "fill", palette.background);
    rule(".tw text", "fill", palette.ink);
    rule(".tw .tw-label,.tw .tw-muted", "fill", palette.muted);
    rule(".tw .tw-on", "fill", palette.on_tile);
    rule(".tw .tw-accent", "fill", palette.accent);
    rule(".tw-c", "stroke", palette.hairline);
    rule(".tw-blank", "fill", palette.padding);
    rule(".tw-hatch,.tw-link,.tw-rail", "stroke", palette.hatch);
    rule(".tw-tile,.tw-inner", "stroke", palette.ink);
    rule(".tw-ring,.tw-moved-link", "stroke", palette.accent);
    rule(".tw-halo", "stroke", palette.background);
    for (number, color) in palette.tiles.into_iter().enumerate() {
        rule(&format!(".tw-{number}"), "fill", color);
    }
    css
}
