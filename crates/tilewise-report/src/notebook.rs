//! HTML for notebooks: text and pictures in one cell's output.

use crate::findings::{causes_in_words, words};
use crate::{AuditOutput, style::line_of};
use std::fmt::Write as _;
use tilewise::{Shape, Tiled};
use tilewise_audit::Explanation;
use tilewise_draw::{Options, Scene, View};

/// The number of arrays at the peak that are listed.
const ROWS: usize = 20;

/// Style of code: its font and its margins in notebooks.
const CODE: &str = "font-family:monospace;overflow-x:auto;margin:.3em 0";

/// The number of arrays that are drawn.
const PICTURES: usize = 3;

/// A shape: its text, its layout in words, its sizes, and its picture.
#[must_use]
pub fn shape(shape: &Shape) -> String {
    let tiled = Tiled::new(shape).ok();
    let tiled = tiled.as_ref();
    let mut html = format!("<div><code>{}</code>", escaped(&shape.to_string()));
    let mut rows: Vec<(String, String)> = Vec::new();
    if let Some(array) = shape.as_array() {
        rows.extend(array.layout_in_words().into_iter().map(|part| (part.text, part.meaning)));
    }
    if let Some(tiled) = tiled {
        let (physical, logical) = (tiled.physical_bytes(), tiled.logical_bytes());
        rows.push(("bytes".into(), format!("{physical} for {logical} of data, {:.2}x", tiled.expansion())));
        rows.extend(causes_in_words(&tilewise_audit::causes(tiled)).into_iter().map(|cause| ("padding".into(), cause)));
    }
    if !rows.is_empty() {
        html.push_str("<table>");
        for (name, meaning) in rows {
            let (name, meaning) = (escaped(&name), escaped(&meaning));
            let _ = write!(html, "<tr><td><code>{name}</code></td><td style=\"text-align:left\">{meaning}</td></tr>");
        }
        html.push_str("</table>");
    }
    let leaves = shape.leaves().filter(|(path, leaf)| !path.is_empty() && leaf.as_array().is_some());
    let arrays: Option<Vec<_>> = leaves.map(|(path, leaf)| Some((path, Tiled::new(&leaf).ok()?))).collect();
    let arrays = arrays.unwrap_or_default();
    if let Some(tiled) = tiled {
        html.push_str(&picture(tiled, View::Both));
    } else if !arrays.is_empty() {
        html.push_str(&Scene::of_tuple(&arrays, &Options::new()).map(|scene| scene.to_svg()).unwrap_or_default());
    }
    html + "</div>"
}

/// A report: a small version of its page. Memory and whether it fits, changes, the timeline, and folded the arrays
/// alive at the peak, the text as it was made for the notebook, and pictures of the arrays with the most padding.
#[must_use]
pub fn report(output: &AuditOutput, text: &str) -> String {
    let summary = output.summary();
    let mut html = format!(
        "<div style=\"max-width:72em\"><div><b>{}</b> {}</div><div><b>{}</b> {}</div>",
        escaped(summary.title),
        escaped(&summary.origin),
        escaped(&summary.headline.sentence),
        escaped(&summary.machine)
    );
    if !summary.causes.is_empty() {
        html.push_str("<ul>");
        for cause in &summary.causes {
            let takes = cause.takes();
            let (said, place) = (prose(&cause.sentence), escaped(&cause.place));
            let _ = write!(html, "<li><b>{takes}</b> {said} <code>{place}</code></li>");
        }
        html.push_str("</ul>");
    }
    if let Some(comfort) = &summary.headline.comfort {
        let _ = write!(html, "<div>{}</div>", escaped(comfort));
    }
    if !summary.changes.is_empty() {
        html.push_str("<ol>");
        for change in &summary.changes {
            let said = words(change.recommendation);
            let (lead, effect) = (escaped(&change.lead), escaped(&change.effect));
            let _ = write!(html, "<li><b>{lead}</b>, {effect}: {}", prose(&said.sentence));
            if let Some(code) = &said.code {
                let _ = write!(html, "<pre style=\"{CODE}\">{}</pre>", escaped(code));
            }
            html.push_str("</li>");
        }
        html.push_str("</ol>");
    }
    if output.report.plan().is_ok() {
        let timeline = output.picture(0).to_svg(&Options::new());
        let _ = write!(html, "<details open><summary>Memory over time</summary>{timeline}</details>");
    }
    let peak = output.report.memory_space(0).and_then(|total| total.peak.as_ref());
    if let Some(peak) = peak {
        html.push_str("<details><summary>Alive at the peak</summary><div style=\"overflow-x:auto\"><table><tr>");
        html.push_str("<th>bytes</th><th>padding</th><th>count</th><th>shape</th><th>for</th><th>owner</th></tr>");
        for row in peak.rows.iter().take(ROWS) {
            let owner = row.source.as_ref().map(line_of).or_else(|| row.op_name.clone());
            let owner = owner.unwrap_or_else(|| row.instruction.clone());
            let (shape, owner) = (escaped(&row.shape.to_string()), escaped(&owner));
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td><code>{shape}</code></td><td>{}</td><td>{owner}</td></tr>",
                row.bytes,
                row.padding_bytes,
                row.count,
                row.role.as_str()
            );
        }
        html.push_str("</table></div></details>");
    }
    // Equal shapes are one picture; a program repeats a few.
    let shapes: Vec<Shape> = output.report.largest_padding().take(16 * PICTURES).map(|buffer| buffer.shape).collect();
    let whole = with_pictures(text, shapes.iter());
    let _ = write!(html, "<details><summary>Report</summary>{whole}</details></div>");
    html
}

/// An explanation: its text as it was made for the notebook, and pictures of the arrays with the most padding.
#[must_use]
pub fn explanation(explained: &Explanation, text: &str) -> String {
    let mut padded: Vec<_> = explained.allocations.iter().filter(|row| row.padding_bytes() > 0).collect();
    padded.sort_by_key(|row| std::cmp::Reverse(row.padding_bytes()));
    with_pictures(text, padded.into_iter().filter_map(|row| row.shape.as_ref()))
}

fn with_pictures<'a>(text: &str, shapes: impl Iterator<Item = &'a Shape>) -> String {
    // Notebooks set `pre` inside HTML output in another font.
    let mut html = format!("<div><pre style=\"font-family:monospace\">{}</pre>", escaped(text.trim_end()));
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

/// A sentence whose `code` is between backticks.
fn prose(sentence: &str) -> String {
    let parts = sentence.split('`').enumerate();
    parts
        .map(|(at, part)| if at % 2 == 0 { escaped(part) } else { format!("<code>{}</code>", escaped(part)) })
        .collect()
}

fn picture(tiled: &Tiled, view: View) -> String {
    Scene::of(tiled, &Options::new().with_view(view)).map(|scene| scene.to_svg()).unwrap_or_default()
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
