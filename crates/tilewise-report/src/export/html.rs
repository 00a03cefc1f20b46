//! A report as one HTML file: the page of `web/`, with the report's data in place of the core.

use super::Exporter;
use crate::{AuditOutput, Summary};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{self, Write},
};
use tilewise::{Tiled, visible};
use tilewise_audit::{JsonLine, Report, ReportView, Timeline};
use tilewise_draw::{Options, Scene};

/// The page, made of `web/report.html` by `cargo xtask web --template`.
const PAGE: &str = include_str!("report.html");

/// Where the data goes.
const DATA: &str = "{{report}}";

/// Shapes whose pictures are inside: those that hold the most, and those that something is said of.
const PICTURES: usize = 24;

/// What the page reads: `Embedded` in `web/src/report.ts`.
#[derive(Serialize)]
struct Embedded<'a> {
    report: JsonLine<'a, ReportView<'a>>,
    timeline: Option<Timeline>,
    summary: Summary<'a>,
    pictures: BTreeMap<String, String>,
}

/// A page of one program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Exporter for Html {
    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(output.to_html().as_bytes())
    }
}

impl AuditOutput {
    /// The report as an HTML page in one file, which needs no network: what it holds over time, what to change, and
    /// pictures of the layouts.
    #[must_use]
    pub fn to_html(&self) -> String {
        // A file may be called anything, and a browser turns the direction of writing where it is told to.
        let source = visible(&self.source);
        let mut view = self.view();
        view.source = &source;
        let embedded = Embedded {
            report: JsonLine::of(&source, view),
            timeline: self.report.timeline(0),
            summary: self.summary(),
            pictures: pictures(&self.report),
        };
        // Only strings have this character in JSON, and no element can end inside one without it. Maps have string
        // keys.
        let data = serde_json::to_string(&embedded).unwrap_or_default().replace('<', "\\u003c");
        PAGE.replacen(DATA, &data, 1)
    }
}

fn pictures(report: &Report) -> BTreeMap<String, String> {
    let peak = report.memory_space(0).and_then(|total| total.peak.as_ref());
    let alive = peak.into_iter().flat_map(|peak| &peak.rows).take(PICTURES / 2).map(|row| row.shape.clone());
    let advice = report.advice().iter().filter_map(|advice| advice.array.as_ref()?.shape());
    let padded = report.largest_padding().take(PICTURES / 2).map(|row| row.shape.clone());
    let mut pictures = BTreeMap::new();
    for shape in advice.chain(alive).chain(padded) {
        let text = shape.to_string();
        if pictures.len() >= PICTURES || pictures.contains_key(&text) {
            continue;
        }
        if let Ok(scene) = Tiled::new(&shape).map(|tiled| Scene::of(&tiled, &Options::new())) {
            pictures.extend(scene.ok().map(|scene| (text, scene.to_svg())));
        }
    }
    pictures
}
