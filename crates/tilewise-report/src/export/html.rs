//! A report as one HTML file: the page of `web/`, with the report's data in place of the core.

use super::Exporter;
use crate::{AsJson, AuditOutput, JsonLine, ReportView, Summary};
use flate2::{Compression, write::DeflateEncoder};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{self, Write},
};
use tilewise::{Tiled, visible};
use tilewise_audit::{Report, Timeline};
use tilewise_draw::{Options, Scene};

/// The page, made of `web/report.html` by `cargo xtask web --template`.
const PAGE: &str = include_str!("report.html");

/// The placeholder for the data.
const DATA: &str = "{{report}}";

/// Shapes with a picture: those of advice, then the largest at the peak and the most padded.
const PICTURES: usize = 24;

/// A longer text of a program is left out.
const LONGEST_TEXT: usize = 4 << 20;

/// The data of one program's page: `Embedded` in `web/src/report.ts`. The page of two has a
/// [`ComparisonPage`](crate::ComparisonPage).
#[derive(Serialize)]
struct Embedded<'a> {
    report: JsonLine<'a, AsJson<'a, ReportView<'a>>>,
    #[serde(serialize_with = "crate::json::optional")]
    timeline: Option<Timeline>,
    summary: Summary<'a>,
    /// [`OnDemand`] as JSON, deflated, in base64.
    on_demand: String,
}

/// Data that a page shows on demand.
#[derive(Serialize)]
struct OnDemand<'a> {
    /// Pictures by shape.
    pictures: BTreeMap<String, String>,
    /// Timelines of the other memory spaces.
    timelines: Vec<AsJson<'a, Timeline>>,
    /// The program's text; `None` if too long.
    text: Option<&'a str>,
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
    /// The report as an HTML page in one file, which needs no network: memory over time, changes, and pictures of the
    /// layouts.
    #[must_use]
    pub fn to_html(&self) -> String {
        // A file may have any name, and browsers obey marks of the direction of writing.
        let source = visible(&self.report.source);
        let mut view = self.view();
        view.source = &source;
        let others = self.report.memory_spaces.iter().filter(|total| total.memory_space != 0 && total.peak.is_some());
        let text = self.report.text();
        let timelines: Vec<Timeline> = others.filter_map(|total| self.report.timeline(total.memory_space)).collect();
        let on_demand = OnDemand {
            pictures: pictures(&self.report),
            timelines: timelines.iter().map(AsJson).collect(),
            text: (text.len() <= LONGEST_TEXT).then_some(text),
        };
        let embedded = Embedded {
            report: JsonLine::of(&source, AsJson(&view)),
            timeline: self.report.timeline(0),
            summary: self.summary(),
            on_demand: packed(&serde_json::to_string(&on_demand).unwrap_or_default()),
        };
        page(&embedded)
    }
}

/// The page with this data inside.
pub(crate) fn page(data: &impl Serialize) -> String {
    // Only strings have this character in JSON, and no element can end inside one without it. Maps have string keys.
    let data = serde_json::to_string(data).unwrap_or_default().replace('<', "\\u003c");
    PAGE.replacen(DATA, &data, 1)
}

/// Deflated, in base64.
fn packed(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector can't fail.
    let bytes = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default();
    let digits = bytes.chunks(3).flat_map(|three| {
        let number = three.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        let digit = move |k: usize| char::from(DIGITS[(number >> (18 - 6 * k)) as usize & 63]);
        (0..4).map(move |k| if k <= three.len() { digit(k) } else { '=' })
    });
    digits.collect()
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
