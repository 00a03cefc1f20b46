//! A scene laid out: every mark at its place, for SVG and PNG alike. One unit is a pixel of a screen at its usual size.

pub(crate) mod class;
mod map;
pub(crate) mod mark;
pub(crate) mod measure;
mod panel;

use crate::{
    Scene,
    scene::{Sheet, Slider, Swatch},
    text::grouped,
};
use class::{Class, Style};
use map::MapLayout;
use mark::{Group, Line, Mark, Point, Text};
use measure::{strong_width, width, wrap, wrap_strong};
use panel::PanelLayout;

pub(crate) const MARGIN: f64 = 18.0;

/// The space between panels.
pub(crate) const SPACE: f64 = 22.0;

/// The greatest width of panels side by side.
pub(crate) const WIDEST: f64 = 980.0;

/// The greatest width of a panel with a map beside it.
const WIDEST_WITH_MAP: f64 = 1080.0;

/// The least width of text.
const NARROWEST: f64 = 340.0;

pub(crate) const LINE: f64 = 1.45;

/// A panel or a map, and its position.
struct Position<'a> {
    placed: Placed<'a>,
    x: f64,
    y: f64,
}

enum Placed<'a> {
    Panel(PanelLayout<'a>),
    Map(MapLayout<'a>),
}

/// A picture, ready to be written.
pub(crate) struct Figure<'a> {
    /// The title, and a description in sentences for those who can't see the picture.
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) size: Point,
    pub(crate) groups: Vec<Group<'a>>,
}

impl<'a> Figure<'a> {
    /// The figures of a scene's arrays below each other.
    pub(crate) fn of(scene: &'a Scene) -> Self {
        let mut whole = Self { title: String::new(), description: String::new(), size: (0.0, 0.0), groups: Vec::new() };
        for sheet in &scene.sheets {
            let figure = Self::of_sheet(sheet);
            let below = whole.size.1;
            for (text, more) in [(&mut whole.title, figure.title), (&mut whole.description, figure.description)] {
                if !text.is_empty() {
                    text.push_str("; ");
                }
                text.push_str(&more);
            }
            whole.groups.extend(figure.groups.into_iter().map(|group| {
                let (x, y) = group.corner;
                Group { corner: (x, y + below), ..group }
            }));
            whole.size = (whole.size.0.max(figure.size.0), below + figure.size.1);
        }
        whole.groups.insert(0, ground(whole.size));
        whole
    }

    fn of_sheet(sheet: &'a Sheet) -> Self {
        let (panels, panels_width, panels_height) = arranged(sheet);
        let title_width = sheet.title.lines().map(|line| strong_width(line, Style::Title.size())).fold(0.0, f64::max);
        let content = panels_width.max(title_width.min(480.0)).max(NARROWEST);

        let mut head = Group::new(None, (0.0, 0.0));
        let mut y = MARGIN;
        y = title(&mut head, &sheet.title, &sheet.summary, content, y);
        y = sliders(&mut head, &sheet.sliders, y);
        if !panels.is_empty() {
            y += SPACE * 0.7;
        }
        let mut groups: Vec<_> = panels
            .iter()
            .map(|Position { placed, x, y: below }| {
                let corner = ((MARGIN + x).round(), (y + below).round());
                match placed {
                    Placed::Panel(panel) => panel.group(corner),
                    Placed::Map(map) => map.group(corner),
                }
            })
            .collect();
        y += panels_height;
        let mut foot = Group::new(None, (0.0, 0.0));
        y = legend(&mut foot, sheet, content, y);
        if !sheet.captions.is_empty() {
            y += 6.0;
        }
        for caption in &sheet.captions {
            y = paragraph(&mut foot, Style::Text, caption, content, y + 3.0);
        }
        let size = ((content + 2.0 * MARGIN).ceil(), (y + MARGIN).ceil());
        groups.insert(0, head);
        groups.push(foot);
        let headings: Vec<&str> = sheet.panels.iter().map(|panel| panel.heading.as_str()).collect();
        let description = format!("{} {}", sheet.summary, headings.join(". "));
        Self { title: sheet.title.replace('\n', ", "), description, size, groups }
    }

    /// The marks of all groups.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &Mark<'a>> {
        self.groups.iter().flat_map(|group| &group.marks)
    }
}

/// Arranges panels in lines, like the words of a text.
fn arranged(sheet: &Sheet) -> (Vec<Position<'_>>, f64, f64) {
    let (mut panels, mut widest, mut height): (Vec<Position<'_>>, f64, f64) = (Vec::new(), 0.0, 0.0);
    let (mut x, mut top): (f64, f64) = (0.0, 0.0);
    for panel in &sheet.panels {
        let placed = PanelLayout::of(panel);
        let fits = panel.beside && x + placed.width <= WIDEST;
        if !fits && !panels.is_empty() {
            top = height + SPACE;
            x = 0.0;
        }
        height = height.max(top + placed.height);
        widest = widest.max(x + placed.width);
        let next = x + placed.width + SPACE * 1.4;
        panels.push(Position { placed: Placed::Panel(placed), x, y: top });
        x = next;
        let Some(tile) = panel.mapped_tile else { continue };
        let beside = x + map::NARROWEST <= WIDEST_WITH_MAP;
        let Some(map) =
            MapLayout::of(&panel.grid, tile, if beside { (WIDEST_WITH_MAP - x).min(WIDEST) } else { WIDEST })
        else {
            continue;
        };
        if !beside {
            top = height + SPACE;
            x = 0.0;
        }
        height = height.max(top + map.height);
        widest = widest.max(x + map.width);
        panels.push(Position { placed: Placed::Map(map), x, y: top });
        // No panel stands beside a map.
        x = WIDEST;
    }
    (panels, widest, height)
}

/// The background behind all marks.
pub(crate) fn ground(size: Point) -> Group<'static> {
    let mut ground = Group::new(None, (0.0, 0.0));
    ground.round_rect(Class::Background, (0.0, 0.0), size, 8.0);
    ground
}

/// The title and the sentence below it; returns where they end, like all functions that write lines.
pub(crate) fn title(group: &mut Group<'_>, title: &str, summary: &str, content: f64, mut y: f64) -> f64 {
    for line in wrap_strong(title, Style::Title.size(), content) {
        y += Style::Title.size() * 1.25;
        group.text(Text::new(Style::Title, (MARGIN, y - 4.0), line));
    }
    paragraph(group, Style::Aside, summary, content, y + 2.0)
}

pub(crate) fn paragraph(group: &mut Group<'_>, style: Style, text: &str, content: f64, mut y: f64) -> f64 {
    for line in wrap(text, style.size(), content) {
        y += style.size() * LINE;
        group.text(Text::new(style, (MARGIN, y - 4.0), line));
    }
    y
}

/// A rail for each dimension that isn't drawn, with a mark at the plane's index.
fn sliders(group: &mut Group<'_>, sliders: &[Slider], mut y: f64) -> f64 {
    const RAIL: f64 = 96.0;
    const HEIGHT: f64 = 19.0;
    let labels = sliders.iter().map(|slider| width(&slider.label, Style::Aside.size())).fold(0.0, f64::max);
    if !sliders.is_empty() {
        y += 6.0;
    }
    for slider in sliders {
        y += HEIGHT;
        let x = MARGIN + labels + 10.0;
        let middle = y - 8.0;
        group.text(Text::new(Style::Aside, (MARGIN, y - 4.0), &slider.label));
        #[expect(clippy::cast_precision_loss, reason = "a position in a picture")]
        let (at, size) = (slider.at as f64, slider.size.max(1) as f64);
        let step = RAIL / size;
        let mut rail = vec![Line::across((x, middle), RAIL)];
        if step >= 4.0 {
            for tick in 0..=slider.size {
                #[expect(clippy::cast_precision_loss, reason = "at most 24")]
                let along = x + tick as f64 * step;
                rail.push(Line::down((along, middle - 4.0), 8.0));
            }
        }
        group.lines(Class::Rail, rail);
        let wide = step.max(5.0);
        group.rect(Class::Accent, ((x + at * step).min(x + RAIL - wide), middle - 4.0), (wide, 8.0));
        let words = format!("at {} of size {}", grouped(slider.at), grouped(slider.size));
        group.text(Text::new(Style::Aside, (x + RAIL + 10.0, y - 4.0), words));
    }
    y
}

fn legend(group: &mut Group<'_>, sheet: &Sheet, content: f64, mut y: f64) -> f64 {
    const SIDE: f64 = 13.0;
    const HEIGHT: f64 = 21.0;
    if sheet.legend.is_empty() {
        return y;
    }
    y += 10.0 + HEIGHT;
    let mut x = 0.0;
    for (swatch, text) in &sheet.legend {
        let many = matches!(swatch, Swatch::Tiles | Swatch::Runs | Swatch::Words);
        let sides = match swatch {
            Swatch::Unmarked => 0.0,
            _ if many => Swatch::COLORS.len() as f64,
            _ => 1.0,
        };
        let text = if many { sheet.per_color(text) } else { text.clone() };
        let wide = sides * SIDE + 6.0 + width(&text, Style::Aside.size());
        if x > 0.0 && x + wide > content {
            x = 0.0;
            y += HEIGHT;
        }
        let (left, top) = (MARGIN + x, y - SIDE - 2.0);
        let mut square = |class, inset: f64, radius| {
            let side = SIDE - 2.0 * inset;
            group.round_rect(class, (left + inset, top + inset), (side, side), radius);
        };
        match swatch {
            Swatch::Tiles | Swatch::Runs | Swatch::Words => {
                for (at, color) in Swatch::COLORS.into_iter().enumerate() {
                    group.rect(Class::Swatch(Some(color)), (left + at as f64 * SIDE, top), (SIDE, SIDE));
                }
            }
            Swatch::OpenTile => square(Class::OpenTile, 1.0, 0.0),
            Swatch::Joined => {
                square(Class::Outline, 0.7, 0.0);
                square(Class::Outline, 3.7, 0.0);
            }
            Swatch::Inner => square(Class::Inner, 1.0, 0.0),
            Swatch::Deepest => square(Class::Deepest, 1.0, 0.0),
            Swatch::Unmarked => {}
            Swatch::Padding => square(Class::Swatch(None), 0.5, 0.0),
            Swatch::Highlight => square(Class::Ring, 1.5, 2.0),
            Swatch::Moved => group.corner(Class::Accent, (left + SIDE - 1.0, top + 2.0), 9.0),
        }
        group.text(Text::new(Style::Aside, (left + sides * SIDE + 6.0, y - 4.0), text));
        x += wide + 18.0;
    }
    y
}
