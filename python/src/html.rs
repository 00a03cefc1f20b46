//! The HTML that notebooks show.

use crate::{builtins::in_python, drawing::arrays};
use std::fmt::Write as _;
use tilewise::{Shape, Tiled};
use tilewise_audit::Explanation;
use tilewise_draw::{Options, Scene, View};
use tilewise_report::{AuditOutput, WriteText};

/// Width of the tables, in columns of text.
const WIDTH: usize = 100;
/// The number of arrays that are drawn.
const PICTURES: usize = 3;

/// A shape: its text, its layout in words, its sizes, and its picture.
pub(crate) fn shape(shape: &Shape, tiled: Option<&Tiled>) -> String {
    let mut html = format!("<div><code>{}</code>", escaped(&shape.to_string()));
    let mut rows: Vec<(String, String)> = Vec::new();
    if let Some(array) = shape.as_array() {
        rows.extend(array.layout_in_words().into_iter().map(|part| (part.text, part.meaning)));
    }
    if let Some(tiled) = tiled {
        let (physical, logical) = (tiled.physical_bytes(), tiled.logical_bytes());
        rows.push(("bytes".into(), format!("{physical} for {logical} of data, {:.2}x", tiled.expansion())));
        rows.extend(tilewise_audit::causes(tiled).into_iter().map(|cause| ("padding".into(), cause)));
    }
    if !rows.is_empty() {
        html.push_str("<table>");
        for (name, meaning) in rows {
            let (name, meaning) = (escaped(&name), escaped(&meaning));
            let _ = write!(html, "<tr><td><code>{name}</code></td><td style=\"text-align:left\">{meaning}</td></tr>");
        }
        html.push_str("</table>");
    }
    let arrays = arrays(shape).unwrap_or_default();
    if let Some(tiled) = tiled {
        html.push_str(&picture(tiled, View::Both));
    } else if !arrays.is_empty() {
        html.push_str(&Scene::of_tuple(&arrays, &Options::new()).map(|scene| scene.to_svg()).unwrap_or_default());
    }
    html + "</div>"
}

/// A report: its text, and pictures of the arrays with the most padding.
pub(crate) fn report(audited: &AuditOutput) -> String {
    let padded = audited.report.largest_padding();
    // Equal shapes are one picture; a program repeats a few.
    let shapes: Vec<Shape> = padded.take(16 * PICTURES).map(|buffer| buffer.shape).collect();
    with_pictures(&audited.to_text(WIDTH), shapes.iter())
}

/// An explanation: its text, and pictures of the arrays with the most padding.
pub(crate) fn explanation(explained: &Explanation) -> String {
    let mut padded: Vec<_> = explained.allocations.iter().filter(|row| row.padding_bytes() > 0).collect();
    padded.sort_by_key(|row| std::cmp::Reverse(row.padding_bytes()));
    with_pictures(&explained.to_text(WIDTH), padded.into_iter().filter_map(|row| row.shape.as_ref()))
}

fn with_pictures<'a>(text: &str, shapes: impl Iterator<Item = &'a Shape>) -> String {
    // Notebooks set `pre` inside HTML output in another font.
    let mut html = format!("<div><pre style=\"font-family:monospace\">{}</pre>", escaped(in_python(text).trim_end()));
    let mut shown: Vec<&Shape> = Vec::new();
    for shape in shapes {
        if shown.len() == PICTURES {
            break;
        }
        let Some(tiled) = Tiled::new(shape).ok().filter(|_| !shown.contains(&shape)) else { continue };
        let (summary, picture) = (escaped(&shape.to_string()), picture(&tiled, View::Logical));
        let _ = write!(html, "<details><summary><code>{summary}</code></summary>{picture}</details>");
        shown.push(shape);
    }
    html + "</div>"
}

fn picture(tiled: &Tiled, view: View) -> String {
    Scene::of(tiled, &Options::new().with_view(view)).map(|scene| scene.to_svg()).unwrap_or_default()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
