//! `tilewise draw`: the picture of a layout, in the terminal or in a file.

use crate::{
    input::each_item,
    output::{FormatArgs, Output, file, terminal::terminal},
    values::{DrawTheme, Slice},
};
use clap::ValueEnum;
use serde::Serialize;
use std::{
    io,
    path::{Path, PathBuf},
};
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;
use tilewise_draw::{BudgetPicture, Options, Scene, Theme, View};
use tilewise_report::{Equation, PictureFormat, Reader, parse_index};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise draw 'f32[3,5]{1,0:T(2,2)}' --highlight 2,3
  tilewise draw 'bf16[16,256]{1,0:T(8,128)(2,1)}' --view word -o words.svg
  tilewise draw 'f32[8,128]{1,0}' 'f32[8,128]{0,1}'     two layouts of one array compared")]
pub(crate) struct Args {
    /// A shape with its layout, of a tuple each array; give a second one to compare them
    #[arg(required = true, num_args = 1..=2, value_name = "SHAPE")]
    shapes: Vec<String>,
    /// Write the picture to a file, .svg or .png; - is standard output, SVG
    #[arg(short, long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// What to draw [default: both, or compare if there are two shapes]
    #[arg(long, value_enum, value_name = "VIEW")]
    view: Option<DrawView>,
    /// Draw the plane at this index of a dimension, such as 0=3 or -1=3
    #[arg(long = "slice", value_name = "DIM=N", allow_hyphen_values = true)]
    slices: Vec<Slice>,
    /// Follow one element, such as 2,3: its tile, its index in the tile, its offset
    #[arg(long, value_name = "INDEX")]
    highlight: Option<String>,
    /// Colours for a light or dark background
    #[arg(long, value_enum, default_value_t, value_name = "THEME")]
    theme: DrawTheme,
    /// Pixels of a PNG per unit of the picture
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR")]
    scale: f32,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DrawView {
    /// The array, with the offset of each element
    Logical,
    /// Memory in order, with the index of each element
    Memory,
    /// The array and memory
    Both,
    /// Which elements share a 32-bit word
    Word,
    /// Two layouts of one array
    Compare,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    let Some((input, others)) = args.shapes.split_first() else { return Ok(()) };
    let mut reader = output.reader();
    let drawn = options(args, others, &mut reader).and_then(|options| {
        let shape = reader.shape(input)?;
        Drawn::new(&shape, &scene(input, &shape, &options)?, args.out.as_ref(), args.scale)
    });
    output.notes(&mut reader)?;
    show(input, drawn, output)
}

/// The picture of an array, or of a tuple's arrays.
fn scene(input: &str, shape: &Shape, options: &Options) -> Result<Scene, Failure> {
    let tiled = |shape: &Shape| Tiled::new(shape).map_err(|error| Failure::from(error).within(0..input.len()));
    let arrays = shape.leaves().filter(|(path, leaf)| !path.is_empty() && leaf.as_array().is_some());
    let arrays: Vec<_> = arrays.map(|(path, leaf)| Ok((path, tiled(&leaf)?))).collect::<Result<_, Failure>>()?;
    let scene = if arrays.is_empty() { Scene::of(&tiled(shape)?, options) } else { Scene::of_tuple(&arrays, options) };
    scene.map_err(undrawn)
}

/// `tilewise steps --draw`: the derivation as a strip of pictures.
pub(crate) fn run_steps(
    shapes: &[String],
    highlight: Option<&str>,
    out: Option<&PathBuf>,
    output: &mut Output,
) -> io::Result<()> {
    each_item(shapes, |input, readable| {
        let mut reader = output.reader();
        let drawn = readable.and_then(|()| {
            let tiled = tiled(input, &mut reader)?;
            let shape = Shape::from(tiled.array().clone());
            let options = followed(terminal().options(), highlight, input)?;
            Drawn::new(&shape, &Scene::steps(&tiled, &options).map_err(undrawn)?, out, SCALE)
        });
        output.notes(&mut reader)?;
        show(input, drawn, output)
    })
}

/// Pixels of a PNG per unit of the picture: sharp on most screens.
pub(super) const SCALE: f32 = 2.0;

fn show(input: &str, drawn: Result<Drawn, Failure>, output: &mut Output) -> io::Result<()> {
    match drawn {
        Ok(Drawn { written: Some(path), .. }) if output.is_for_people() => output.note(&format!("wrote {path}")),
        drawn => output.item_as(input, drawn, |drawn, out| out.write_all(drawn.picture.as_bytes())),
    }
}

/// A picture: for standard output, or where it was written.
#[derive(Serialize)]
struct Drawn {
    shape: String,
    /// The picture itself, as SVG; empty where it went to a file.
    svg: String,
    #[serde(skip)]
    picture: String,
    #[serde(rename = "file")]
    written: Option<String>,
}

impl Drawn {
    fn new(shape: &Shape, scene: &Scene, out: Option<&PathBuf>, scale: f32) -> Result<Self, Failure> {
        let shape = shape.to_string();
        let Some(path) = out.filter(|path| path.as_os_str() != "-") else {
            let svg = scene.to_svg();
            let picture = if out.is_some() { svg.clone() } else { scene.to_terminal(terminal().width) };
            return Ok(Self { shape, svg, picture, written: None });
        };
        write_scaled(scene, path, scale)?;
        Ok(Self { shape, svg: String::new(), picture: String::new(), written: Some(path.display().to_string()) })
    }
}

fn write_scaled(scene: &Scene, path: &Path, scale: f32) -> Result<(), Failure> {
    let bytes = match picture_format(path, scale)? {
        #[cfg(feature = "png")]
        PictureFormat::Png(scale) => scene.to_png(scale).map_err(undrawn)?,
        _ => scene.to_svg().into_bytes(),
    };
    write(path, &bytes)
}

/// Writes the picture of a memory budget.
pub(super) fn write_budget(picture: &BudgetPicture, options: &Options, path: &Path) -> Result<(), Failure> {
    let bytes = match picture_format(path, SCALE)? {
        #[cfg(feature = "png")]
        PictureFormat::Png(scale) => picture.to_png(options, scale).map_err(undrawn)?,
        _ => picture.to_svg(options).into_bytes(),
    };
    write(path, &bytes)
}

/// The format of a picture, from its file's extension.
pub(super) fn picture_format(path: &Path, scale: f32) -> Result<PictureFormat, Failure> {
    let unknown = |message| Err(Failure::new("unknown_picture_format", message));
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(PictureFormat::Svg),
        #[cfg(feature = "png")]
        Some("png") => Ok(PictureFormat::Png(scale)),
        #[cfg(not(feature = "png"))]
        Some("png") => unknown("this build can't write PNG; use .svg"),
        _ => unknown("a picture can only be written as .svg or .png"),
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    file::write(path, bytes).map_err(|error| Failure::new("io", format!("can't write {}: {error}", path.display())))
}

fn tiled(text: &str, reader: &mut Reader) -> Result<Tiled, Failure> {
    Tiled::new(&reader.shape(text)?).map_err(|error| Failure::from(error).within(0..text.len()))
}

fn options(args: &Args, others: &[String], reader: &mut Reader) -> Result<Options, Failure> {
    let view = match (args.view, others) {
        (Some(DrawView::Compare) | None, [other]) => View::Compare(Box::new(tiled(other, reader)?)),
        (Some(DrawView::Compare), _) | (_, [_, ..]) => {
            return Err(Failure::new("syntax", "a comparison needs two shapes and no other view: `tilewise draw A B`"));
        }
        (Some(DrawView::Logical), []) => View::Logical,
        (Some(DrawView::Memory), []) => View::Memory,
        (Some(DrawView::Word), []) => View::Word,
        (Some(DrawView::Both) | None, []) => View::Both,
    };
    let mut options = terminal().options().with_view(view).with_theme(args.theme.into());
    for slice in &args.slices {
        options = options.with_slice(slice.dimension, slice.index);
    }
    followed(options, args.highlight.as_deref(), args.shapes.first().map_or("", String::as_str))
}

/// The options with the element to follow: `highlight`, or that of an equation.
fn followed(options: Options, highlight: Option<&str>, input: &str) -> Result<Options, Failure> {
    if let Some(index) = highlight {
        return Ok(options.with_highlight(parse_index(index)?));
    }
    let element = Equation::begins(input).then(|| Equation::element(input).ok()).flatten();
    Ok(match element {
        Some((_, index)) => options.with_highlight(index),
        None => options,
    })
}

impl From<DrawTheme> for Theme {
    fn from(theme: DrawTheme) -> Self {
        match theme {
            DrawTheme::Auto => Self::Auto,
            DrawTheme::Light => Self::Light,
            DrawTheme::Dark => Self::Dark,
        }
    }
}

fn undrawn(error: tilewise_draw::Error) -> Failure {
    Failure::new(error.kind().as_str(), error.to_string())
}
