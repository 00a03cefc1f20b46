//! A scene as an SVG document.

mod canvas;
mod measure;
mod panel;
mod style;

use crate::{
    Scene, Theme,
    scene::{Slider, Swatch},
    text::grouped,
};
use canvas::{Canvas, N};
use measure::{strong_width, width, wrap, wrap_strong};
use panel::{Placed, described};
use style::{TEXT, TITLE};

const MARGIN: f64 = 18.0;

/// Between panels.
const SPACE: f64 = 22.0;

/// Panels stand side by side up to this width.
const WIDEST: f64 = 980.0;

/// Words have at least this width.
const NARROWEST: f64 = 340.0;

const LINE: f64 = 1.45;

/// A panel and where it goes.
struct Position<'a> {
    placed: Placed<'a>,
    x: f64,
    y: f64,
}

pub(crate) fn write(scene: &Scene, theme: Theme) -> String {
    let (panels, panels_width, panels_height) = arranged(scene);
    let title_width = scene.title.lines().map(|line| strong_width(line, TITLE)).fold(0.0, f64::max);
    let content = panels_width.max(title_width.min(480.0)).max(NARROWEST);

    let mut canvas = Canvas::default();
    let mut y = MARGIN;
    for line in wrap_strong(&scene.title, TITLE, content) {
        y += TITLE * 1.25;
        canvas.text("tw-title", MARGIN, y - 4.0, &line);
    }
    y = paragraph(&mut canvas, "tw-muted", &scene.summary, content, y + 2.0);
    y = sliders(&mut canvas, &scene.sliders, y);
    if !panels.is_empty() {
        y += SPACE * 0.7;
    }
    for Position { placed, x, y: down } in &panels {
        placed.write(&mut canvas, MARGIN + x, y + down);
    }
    y += panels_height;
    y = legend(&mut canvas, &scene.legend, content, y);
    if !scene.captions.is_empty() {
        y += 6.0;
    }
    for caption in &scene.captions {
        y = paragraph(&mut canvas, "", caption, content, y + 3.0);
    }
    document(scene, theme, content + 2.0 * MARGIN, y + MARGIN, &canvas.out)
}

fn document(scene: &Scene, theme: Theme, width: f64, height: f64, body: &str) -> String {
    let mut canvas = Canvas::default();
    let (width, height) = (N(width.ceil()), N(height.ceil()));
    canvas.write(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tw\" role=\"img\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n"
    ));
    described(&mut canvas, "title", &scene.title.replace('\n', ", "));
    let headings: Vec<&str> = scene.panels.iter().map(|panel| panel.heading.as_str()).collect();
    described(&mut canvas, "desc", &format!("{} {}", scene.summary, headings.join(". ")));
    canvas.out.push_str(&style::sheet(theme));
    canvas.out.push_str(
        "\n<defs><pattern id=\"tw-padding\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect class=\"tw-blank\" width=\"6\" height=\"6\"/>\
         <path class=\"tw-hatch\" d=\"M3 0v6\" stroke-width=\"1.2\"/></pattern></defs>\n",
    );
    canvas.write(format_args!("<rect class=\"tw-background\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n"));
    canvas.out.push_str(body);
    canvas.out.push_str("</svg>\n");
    canvas.out
}

/// Panels in lines, as the words of a text.
fn arranged(scene: &Scene) -> (Vec<Position<'_>>, f64, f64) {
    let (mut panels, mut widest, mut height): (Vec<Position<'_>>, f64, f64) = (Vec::new(), 0.0, 0.0);
    let (mut x, mut top): (f64, f64) = (0.0, 0.0);
    for panel in &scene.panels {
        let placed = Placed::of(panel);
        let fits = panel.beside && x + placed.width <= WIDEST;
        if !fits && !panels.is_empty() {
            top = height + SPACE;
            x = 0.0;
        }
        height = height.max(top + placed.height);
        widest = widest.max(x + placed.width);
        let next = x + placed.width + SPACE * 1.4;
        panels.push(Position { placed, x, y: top });
        x = next;
    }
    (panels, widest, height)
}

fn paragraph(canvas: &mut Canvas, class: &str, text: &str, content: f64, mut y: f64) -> f64 {
    for line in wrap(text, TEXT, content) {
        y += TEXT * LINE;
        canvas.text(class, MARGIN, y - 4.0, &line);
    }
    y
}

/// A rail for each dimension that isn't drawn, with a mark where the picture lies.
fn sliders(canvas: &mut Canvas, sliders: &[Slider], mut y: f64) -> f64 {
    const RAIL: f64 = 96.0;
    const HEIGHT: f64 = 19.0;
    let labels = sliders.iter().map(|slider| width(&slider.label, TEXT)).fold(0.0, f64::max);
    if !sliders.is_empty() {
        y += 6.0;
    }
    for slider in sliders {
        y += HEIGHT;
        let x = MARGIN + labels + 10.0;
        let middle = y - 8.0;
        canvas.text("tw-muted", MARGIN, y - 4.0, &slider.label);
        #[expect(clippy::cast_precision_loss, reason = "a position in a picture")]
        let (at, size) = (slider.at as f64, slider.size.max(1) as f64);
        let step = RAIL / size;
        let mut ticks = format!("M{} {}h{RAIL}", N(x), N(middle));
        if step >= 4.0 {
            for tick in 0..=slider.size {
                #[expect(clippy::cast_precision_loss, reason = "at most 24")]
                let along = x + tick as f64 * step;
                ticks.push_str(&format!("M{} {}v8", N(along), N(middle - 4.0)));
            }
        }
        canvas.path("tw-rail", &ticks);
        let wide = step.max(5.0);
        canvas.rect("tw-accent", (x + at * step).min(x + RAIL - wide), middle - 4.0, wide, 8.0, "");
        let words = format!("at {} of size {}", grouped(slider.at), grouped(slider.size));
        canvas.text("tw-muted", x + RAIL + 10.0, y - 4.0, &words);
    }
    y
}

fn legend(canvas: &mut Canvas, legend: &[(Swatch, String)], content: f64, mut y: f64) -> f64 {
    const SIDE: f64 = 13.0;
    const HEIGHT: f64 = 21.0;
    if legend.is_empty() {
        return y;
    }
    y += 10.0 + HEIGHT;
    let mut x = 0.0;
    for (swatch, text) in legend {
        let many = matches!(swatch, Swatch::Tiles | Swatch::Runs | Swatch::Words);
        let sides = if many { Swatch::COLORS.len() as f64 } else { 1.0 };
        let text = if many { format!("one colour per {text}") } else { text.clone() };
        let wide = sides * SIDE + 6.0 + width(&text, TEXT);
        if x > 0.0 && x + wide > content {
            x = 0.0;
            y += HEIGHT;
        }
        let (left, top) = (MARGIN + x, y - SIDE - 2.0);
        match swatch {
            Swatch::Tiles | Swatch::Runs | Swatch::Words => {
                for (at, color) in Swatch::COLORS.iter().enumerate() {
                    canvas.rect(&format!("tw-{color}"), left + at as f64 * SIDE, top, SIDE, SIDE, "");
                }
            }
            Swatch::Inner => canvas.rect("tw-inner", left + 1.0, top + 1.0, SIDE - 2.0, SIDE - 2.0, ""),
            Swatch::Padding => {
                canvas.rect("tw-hatch", left + 0.5, top + 0.5, SIDE - 1.0, SIDE - 1.0, " fill=\"url(#tw-padding)\"");
            }
            Swatch::Highlight => canvas.rect("tw-ring", left + 1.5, top + 1.5, SIDE - 3.0, SIDE - 3.0, " rx=\"2\""),
            Swatch::Moved => canvas.path("tw-accent", &format!("M{} {}h-9l9 9z", N(left + SIDE - 1.0), N(top + 2.0))),
        }
        canvas.text("tw-muted", left + sides * SIDE + 6.0, y - 4.0, &text);
        x += wide + 18.0;
    }
    y
}
