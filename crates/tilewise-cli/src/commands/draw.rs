//! `tilewise draw`: the picture of a layout, in the terminal or in a file.

use crate::{
    cli::{DrawArgs, DrawTheme, DrawView},
    input::each_item,
    output::{Output, file, terminal::terminal},
};
use serde::Serialize;
use std::{
    io,
    path::{Path, PathBuf},
};
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;
use tilewise_draw::{Options, Scene, Theme, View};
use tilewise_report::{PictureFormat, parse_index, parse_shape};

pub(crate) fn run(args: &DrawArgs, output: &mut Output) -> io::Result<()> {
    let Some((input, others)) = args.shapes.split_first() else { return Ok(()) };
    let drawn = options(args, others).and_then(|options| {
        let shape = parse_shape(input)?;
        Drawn::new(&shape, &scene(input, &shape, &options)?, args.out.as_ref(), args.scale)
    });
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
pub(crate) fn run_steps(shapes: &[String], out: Option<&PathBuf>, output: &mut Output) -> io::Result<()> {
    each_item(shapes, |input, readable| {
        let drawn = readable.and_then(|()| {
            let tiled = tiled(input)?;
            let shape = Shape::from(tiled.array().clone());
            Drawn::new(&shape, &Scene::steps(&tiled, &terminal().options()).map_err(undrawn)?, out, SCALE)
        });
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

/// The format of a picture, as its file's name says.
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

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    file::write(path, bytes).map_err(|error| Failure::new("io", format!("can't write {}: {error}", path.display())))
}

fn tiled(text: &str) -> Result<Tiled, Failure> {
    Tiled::new(&parse_shape(text)?).map_err(|error| Failure::from(error).within(0..text.len()))
}

fn options(args: &DrawArgs, others: &[String]) -> Result<Options, Failure> {
    let view = match (args.view, others) {
        (Some(DrawView::Compare) | None, [other]) => View::Compare(Box::new(tiled(other)?)),
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
    match &args.highlight {
        Some(index) => Ok(options.with_highlight(parse_index(index)?)),
        None => Ok(options),
    }
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
