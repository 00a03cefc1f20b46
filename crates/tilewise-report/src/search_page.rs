//! The page of a search for the sizes that fit, with a picture of bytes by size.

use crate::{notebook::escaped, style::bytes};
use std::fmt::{self, Write as _};

/// The results of a search, as a page; [`to_svg`](Self::to_svg) is its picture alone.
///
/// ```
/// use tilewise_report::{SearchCurve, SearchPage, SearchPoint};
///
/// let fits = SearchPoint { size: 8, bytes: 2 << 30, limit: 16 << 30, status: "fits".into() };
/// let curve = SearchCurve { name: "remat=full".into(), points: vec![fits] };
/// let page = SearchPage { axis: "batch".into(), curves: vec![curve], ..SearchPage::default() };
/// assert!(page.to_svg().contains("<title>8: 2.00 GiB, fits</title>"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SearchPage {
    /// The name of the searched size.
    pub axis: String,
    /// The curves, one for each combination of settings.
    pub curves: Vec<SearchCurve>,
    /// The cells of the table, the first row its header.
    pub rows: Vec<Vec<String>>,
    /// The largest owners on both sides of the limit, in words.
    pub owners: Vec<String>,
    /// Paragraphs below.
    pub notes: Vec<String>,
}

/// The asked sizes of a combination of settings.
#[derive(Clone, Debug, Default)]
pub struct SearchCurve {
    /// The settings in words.
    pub name: String,
    /// The sizes, ascending.
    pub points: Vec<SearchPoint>,
}

/// One asked size.
#[derive(Clone, Debug, Default)]
pub struct SearchPoint {
    /// The size.
    pub size: u64,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Bytes that it has to fit.
    pub limit: u64,
    /// The compiler's answer: `fits`, `planned`, `refused` or another.
    pub status: String,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 16.0;
const COLOURS: [&str; 6] = ["#0b6e99", "#c2571a", "#3d8b37", "#7a4fa3", "#a8324a", "#6b6b00"];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
                     table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
                     td,th{text-align:left;padding:.2em 1em .2em 0}\
                     th{border-bottom:1px solid #888;font-weight:600}svg text{font:12px system-ui,sans-serif;fill:#222}";

impl SearchPage {
    /// The page, in one file.
    #[must_use]
    pub fn to_html(&self) -> String {
        let row = |cells: &Vec<String>, tag: &str| format!("<tr>{}</tr>", tagged(cells, tag));
        let (head, body) =
            self.rows.split_first().map_or((String::new(), &[][..]), |(head, body)| (row(head, "th"), body));
        let body: String = body.iter().map(|cells| row(cells, "td")).collect();
        let owners = match &self.owners[..] {
            [] => String::new(),
            owners => format!("<h2>What holds the most</h2><ul>{}</ul>", tagged(owners, "li")),
        };
        let (picture, notes) = (self.to_svg(), tagged(&self.notes, "p"));
        format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>What fits</title><style>{STYLE}</style>\
             <h1>What fits</h1>{picture}<table>{head}{body}</table>{owners}{notes}</html>"
        )
    }

    /// Bytes over the size, a line for each combination, and the limit, as SVG; empty without points.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let Some(plot) = Plot::of(&self.curves) else { return String::new() };
        let mut svg = String::new();
        // A `String` takes whatever is written.
        let _ = self.write_svg(&plot, &mut svg);
        svg
    }

    fn write_svg(&self, plot: &Plot, svg: &mut String) -> fmt::Result {
        let (axis, limit) = (escaped(&self.axis), plot.y(plot.limit));
        let (right, floor, label) = (WIDTH - 10.0, HEIGHT - BOTTOM, HEIGHT - 8.0);
        write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Bytes by {axis}\">\
             <path d=\"M{LEFT} {TOP}V{floor}H{right}\" fill=\"none\" stroke=\"#888\"/>\
             <path d=\"M{LEFT} {limit:.1}H{right}\" stroke=\"#a00\" stroke-dasharray=\"5 4\"/>\
             <text x=\"{}\" y=\"{:.1}\">limit {}</text>\
             <text x=\"{right}\" y=\"{label}\" text-anchor=\"end\">{axis} {}</text><text x=\"{LEFT}\" y=\"{label}\">0</text>",
            LEFT + 6.0,
            limit - 5.0,
            bytes(plot.limit),
            plot.widest
        )?;
        let mut place = TOP + 14.0;
        for (curve, colour) in self.curves.iter().zip(COLOURS.iter().cycle()) {
            let at = |point: &SearchPoint| (plot.x(point.size), plot.y(point.bytes));
            let line: Vec<_> =
                curve.points.iter().map(|point| format!("{:.1},{:.1}", at(point).0, at(point).1)).collect();
            let line = line.join(" ");
            write!(svg, "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\".5\"/>")?;
            for point in &curve.points {
                let (x, y) = at(point);
                let SearchPoint { size, status, .. } = point;
                let fill = if ["fits", "planned"].contains(&&**status) { colour } else { "#fff" };
                let title = escaped(&format!("{size}: {}, {status}", bytes(point.bytes)));
                write!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\" stroke=\"{colour}\"><title>{title}</title></circle>"
                )?;
            }
            place += 14.0;
            if !curve.name.is_empty() {
                let name = escaped(&curve.name);
                write!(svg, "<text x=\"{}\" y=\"{place}\" fill=\"{colour}\">{name}</text>", LEFT + 6.0)?;
            }
        }
        svg.write_str("</svg>")
    }
}

fn tagged(texts: &[String], tag: &str) -> String {
    texts.iter().map(|text| format!("<{tag}>{}</{tag}>", escaped(text))).collect()
}

/// The scales of sizes and bytes.
struct Plot {
    widest: u64,
    limit: u64,
    highest: f64,
}

#[expect(clippy::cast_precision_loss, reason = "places in a picture")]
impl Plot {
    fn of(curves: &[SearchCurve]) -> Option<Self> {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let limit = points().map(|point| point.limit).max()?;
        let most = points().map(|point| point.bytes).max()?.max(limit);
        // Far above the limit there is nothing to see.
        let highest = 1.05 * most.min(limit.saturating_mul(2)).max(1) as f64;
        Some(Self { widest: points().map(|point| point.size).max()?.max(1), limit, highest })
    }

    fn x(&self, size: u64) -> f64 {
        LEFT + (WIDTH - LEFT - 10.0) * size as f64 / self.widest as f64
    }

    fn y(&self, bytes: u64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (bytes as f64).min(self.highest) / self.highest
    }
}
