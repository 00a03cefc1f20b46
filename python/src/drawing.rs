//! `Drawing`: a picture of a layout or of a program's memory.

use crate::{
    errors::{Class, Error, Result},
    shape::PyShape,
    travel::{Reduced, native},
    whole::whole,
};
use pyo3::{IntoPyObjectExt, exceptions::PyValueError, prelude::*, types::PyBytes};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::Arc,
};
use tilewise::{Shape, Tiled};
use tilewise_draw::{FrontierPicture, FrontierPoint, MemoryPicture, Options, Scene, Theme, View};
use tilewise_report::AuditOutput;

/// A shape and the arguments of `Shape.draw`: all inputs of a picture.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) shape: PyShape,
    pub(crate) view: String,
    pub(crate) compare: Option<PyShape>,
    pub(crate) highlight: Option<Vec<u64>>,
    pub(crate) slices: BTreeMap<i64, u64>,
    pub(crate) theme: String,
}

/// A picture of a layout, or of a program's memory: notebooks display it, `save` writes it as SVG, PNG or text, `str` is
/// its text.
///
/// Examples:
///     >>> print(Shape("f32[2,2]{0,1}").draw(view="memory"), end="")
///     f32[2,2]{0,1}
///     4 elements, no padding, 16 bytes.
///     ...
#[pyclass(frozen, module = "tilewise", name = "Drawing")]
pub(crate) struct PyDrawing(Picture);

/// A picture with its inputs.
enum Picture {
    Layout { scene: Box<Scene>, request: Box<Request> },
    Memory(MemoryRequest),
    Frontier(FrontierRequest),
}

/// The arguments of `frontier`.
#[derive(Clone, PartialEq)]
pub(crate) struct FrontierRequest {
    title: String,
    summary: String,
    /// Each with its label, bytes, seconds, and whether it is chosen.
    points: Vec<(String, u64, f64, bool)>,
    limit: u64,
    theme: String,
}

impl FrontierRequest {
    fn picture(&self) -> FrontierPicture {
        let point = |(label, bytes, seconds, is_chosen): &(String, u64, f64, bool)| FrontierPoint {
            label: label.clone(),
            bytes: *bytes,
            seconds: *seconds,
            is_chosen: *is_chosen,
        };
        FrontierPicture {
            title: self.title.clone(),
            summary: self.summary.clone(),
            time: "time of a run at full rates".to_owned(),
            points: self.points.iter().map(point).collect(),
            limit: Some(self.limit),
        }
    }
}

fn themed(name: &str) -> Options {
    Options::new().with_theme(theme(name).unwrap_or(Theme::Auto))
}

/// The memory plan of a report, and the arguments of `Report.plot`.
pub(crate) struct MemoryRequest {
    /// The `Report`.
    pub(crate) report: Py<PyAny>,
    /// The report's audit.
    pub(crate) audited: Arc<AuditOutput>,
    pub(crate) memory_space: u8,
    pub(crate) theme: String,
}

impl MemoryRequest {
    fn picture(&self) -> MemoryPicture<'_> {
        self.audited.picture(self.memory_space)
    }
}

impl Picture {
    fn svg(&self) -> String {
        match self {
            Self::Layout { scene, .. } => scene.to_svg(),
            Self::Memory(memory) => memory.picture().to_svg(&themed(&memory.theme)),
            Self::Frontier(frontier) => frontier.picture().to_svg(&themed(&frontier.theme)),
        }
    }

    fn text(&self, width: usize) -> String {
        match self {
            Self::Layout { scene, .. } => scene.to_terminal(width),
            Self::Memory(memory) => {
                let picture = memory.picture();
                format!("{}\n{}", picture.title, picture.to_terminal(&themed(&memory.theme), width))
            }
            Self::Frontier(frontier) => frontier.picture().to_terminal(),
        }
    }

    fn png(&self, scale: f32) -> Result<Vec<u8>> {
        Ok(match self {
            Self::Layout { scene, .. } => scene.to_png(scale)?,
            Self::Memory(memory) => memory.picture().to_png(&themed(&memory.theme), scale)?,
            Self::Frontier(frontier) => frontier.picture().to_png(&themed(&frontier.theme), scale)?,
        })
    }
}

fn theme(name: &str) -> Result<Theme> {
    match name {
        "auto" => Ok(Theme::Auto),
        "light" => Ok(Theme::Light),
        "dark" => Ok(Theme::Dark),
        other => Err(unknown("theme", other, "'auto', 'light' or 'dark'")),
    }
}

impl PyDrawing {
    pub(crate) fn of(request: Request) -> Result<Self> {
        let mut options = Options::new().with_theme(theme(&request.theme)?);
        if let Some(index) = &request.highlight {
            options = options.with_highlight(index.clone());
        }
        for (dimension, index) in &request.slices {
            options = options.with_slice(*dimension, *index);
        }
        let view = match (&request.compare, request.view.as_str()) {
            (Some(other), _) => Some(View::Compare(Box::new(other.tiled()?.clone()))),
            (None, "logical") => Some(View::Logical),
            (None, "memory") => Some(View::Memory),
            (None, "both") => Some(View::Both),
            (None, "word") => Some(View::Word),
            (None, "steps") => None,
            (None, other) => return Err(unknown("view", other, "'logical', 'memory', 'both', 'word' or 'steps'")),
        };
        let arrays = arrays(request.shape.as_shape())?;
        let scene = match view {
            Some(view) if !arrays.is_empty() => Scene::of_tuple(&arrays, &options.with_view(view))?,
            Some(view) => Scene::of(request.shape.tiled()?, &options.with_view(view))?,
            None => Scene::steps(request.shape.tiled()?, &options)?,
        };
        Ok(Self(Picture::Layout { scene: Box::new(scene), request: Box::new(request) }))
    }

    /// The picture of a memory plan.
    pub(crate) fn of_memory(request: MemoryRequest) -> Result<Self> {
        theme(&request.theme)?;
        if let Err(error) = request.audited.report.plan() {
            return Err(Error::new(Class::Draw, "no_plan", format!("no memory plan to draw: {error}")));
        }
        Ok(Self(Picture::Memory(request)))
    }
}

/// The arrays of a tuple, each with its path; empty for other shapes.
pub(crate) fn arrays(shape: &Shape) -> Result<Vec<(Vec<usize>, Tiled)>> {
    let leaves = shape.leaves().filter(|(path, leaf)| !path.is_empty() && leaf.as_array().is_some());
    leaves.map(|(path, leaf)| Ok((path, Tiled::new(&leaf)?))).collect()
}

/// The picture of the shape in a text. Pickled pictures call it.
#[pyfunction]
#[pyo3(signature = (shape, view, compare, highlight: "Sequence[int] | None", slices: "Mapping[int, int]", theme))]
pub(crate) fn draw(
    shape: &str,
    view: String,
    compare: Option<&str>,
    highlight: Option<Vec<u64>>,
    slices: BTreeMap<i64, u64>,
    theme: String,
) -> Result<PyDrawing> {
    let parsed = |text| Ok::<_, Error>(PyShape::new(Shape::parse_as_written(text)?));
    let (shape, compare) = (parsed(shape)?, compare.map(parsed).transpose()?);
    PyDrawing::of(Request { shape, view, compare, highlight, slices, theme })
}

/// The picture of choices in bytes and time. `Remat.draw` calls it, and pickled pictures.
#[pyfunction]
#[pyo3(signature = (title, summary, points: "Sequence[tuple[str, int, float, bool]]", limit, theme))]
pub(crate) fn frontier(
    title: String,
    summary: String,
    points: Vec<(String, u64, f64, bool)>,
    limit: u64,
    theme: String,
) -> Result<PyDrawing> {
    self::theme(&theme)?;
    Ok(PyDrawing(Picture::Frontier(FrontierRequest { title, summary, points, limit, theme })))
}

fn unknown(argument: &str, given: &str, known: &str) -> Error {
    PyValueError::new_err(format!("{argument} must be {known}, not {given:?}")).into()
}

#[pymethods]
impl PyDrawing {
    /// The picture as an SVG document.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,2]").draw().to_svg()[:4]
    ///     '<svg'
    fn to_svg(&self) -> String {
        self.0.svg()
    }

    /// The picture as lines of text.
    ///
    /// Args:
    ///     width: the number of columns to fit into, where the widest cell allows it.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,2]").draw().to_text(width=60).splitlines()[0]
    ///     'f32[2,2]{1,0}'
    #[pyo3(signature = (*, width: "int" = 100))]
    fn to_text(&self, #[pyo3(from_py_with = whole)] width: usize) -> String {
        self.0.text(width)
    }

    /// The picture as a PNG image.
    ///
    /// Args:
    ///     scale: pixels per unit of the SVG.
    ///
    /// Raises:
    ///     DrawError: the scale is not a positive number, or the image would have more than 100 million pixels.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,2]").draw().to_png(scale=1.0)[1:4]
    ///     b'PNG'
    #[pyo3(signature = (*, scale = 2.0))]
    fn to_png<'py>(&self, py: Python<'py>, scale: f32) -> Result<Bound<'py, PyBytes>> {
        let png = py.detach(|| self.0.png(scale))?;
        Ok(PyBytes::new(py, &png))
    }

    /// Writes the picture to a file. The file name's extension chooses the format: `.svg`, `.png` or `.txt`.
    ///
    /// Raises:
    ///     DrawError: any other extension.
    ///     OSError: the file can't be written.
    ///
    /// Examples:
    ///     >>> import os, tempfile
    ///     >>> with tempfile.TemporaryDirectory() as folder:
    ///     ...     Shape("f32[2,2]").draw().save(os.path.join(folder, "layout.svg"))
    ///     ...     os.listdir(folder)
    ///     ['layout.svg']
    #[pyo3(signature = (path, /), text_signature = "($self, path, /)")]
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let bytes = match ending.as_deref() {
            Some("svg") => self.0.svg().into_bytes(),
            Some("txt") => self.0.text(100).into_bytes(),
            Some("png") => py.detach(|| self.0.png(2.0))?,
            _ => {
                let message = format!("{} ends in neither .svg nor .png nor .txt", path.display());
                return Err(Error::new(Class::Draw, "unknown_format", message));
            }
        };
        // Written by Python, whose `OSError` names the file.
        py.import("pathlib")?.call_method1("Path", (path,))?.call_method1("write_bytes", (bytes.as_slice(),))?;
        Ok(())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        match (&self.0, &other.get().0) {
            (Picture::Layout { request, .. }, Picture::Layout { request: other, .. }) => Ok(request == other),
            (Picture::Memory(memory), Picture::Memory(other)) => Ok(memory.memory_space == other.memory_space
                && memory.theme == other.theme
                && memory.report.bind(py).eq(&other.report)?),
            (Picture::Frontier(frontier), Picture::Frontier(other)) => Ok(frontier == other),
            _ => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        match &self.0 {
            Picture::Layout { request, .. } => request.hash(&mut hasher),
            Picture::Memory(memory) => {
                (memory.report.bind(py).hash()?, memory.memory_space, &memory.theme).hash(&mut hasher);
            }
            Picture::Frontier(frontier) => (&frontier.title, &frontier.summary, frontier.limit).hash(&mut hasher),
        }
        Ok(hasher.finish())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, Bound<'py, PyAny>>> {
        let py = slf.py();
        match &slf.get().0 {
            Picture::Layout { request, .. } => {
                let Request { shape, view, compare, highlight, slices, theme } = &**request;
                let compare = compare.as_ref().map(PyShape::to_string);
                let arguments = (shape.to_string(), view, compare, highlight.clone(), slices.clone(), theme);
                Ok((native(py, "draw")?, arguments.into_bound_py_any(py)?))
            }
            Picture::Memory(MemoryRequest { report, memory_space, theme, .. }) => {
                Ok((native(py, "plot")?, (report, memory_space, theme).into_bound_py_any(py)?))
            }
            Picture::Frontier(FrontierRequest { title, summary, points, limit, theme }) => {
                let arguments = (title, summary, points.clone(), limit, theme);
                Ok((native(py, "frontier")?, arguments.into_bound_py_any(py)?))
            }
        }
    }

    fn _repr_svg_(&self) -> String {
        self.0.svg()
    }

    fn __str__(&self) -> String {
        self.0.text(100)
    }

    fn __repr__(&self) -> String {
        let text = self.0.text(100);
        format!("<Drawing of {}>", text.lines().next().unwrap_or_default())
    }
}
