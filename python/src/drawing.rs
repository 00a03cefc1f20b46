//! `Drawing`: a picture of a layout.

use crate::errors::{Class, Error, Result};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes};
use std::{collections::BTreeMap, path::PathBuf};
use tilewise::Tiled;
use tilewise_draw::{Options, Scene, Theme, View};

/// The arguments of `Shape.draw`.
pub(crate) struct Request<'a> {
    pub(crate) view: &'a str,
    pub(crate) compare: Option<Tiled>,
    pub(crate) highlight: Option<Vec<u64>>,
    pub(crate) slices: BTreeMap<i64, u64>,
    pub(crate) theme: &'a str,
}

/// A picture of a layout: notebooks display it, `save` writes it as SVG, PNG or text, `str` is its text.
///
/// Examples:
///     >>> print(Shape("f32[2,2]{0,1}").draw(view="memory"), end="")
///     f32[2,2]{0,1}
///     4 elements, no padding, 16 bytes.
///     ...
#[pyclass(frozen, module = "tilewise", name = "Drawing")]
pub(crate) struct PyDrawing(Scene);

impl PyDrawing {
    pub(crate) fn of(tiled: &Tiled, request: Request<'_>) -> Result<Self> {
        let mut options = Options::new().with_theme(match request.theme {
            "auto" => Theme::Auto,
            "light" => Theme::Light,
            "dark" => Theme::Dark,
            other => return Err(unknown("theme", other, "'auto', 'light' or 'dark'")),
        });
        if let Some(index) = request.highlight {
            options = options.with_highlight(index);
        }
        for (dimension, index) in request.slices {
            options = options.with_slice(dimension, index);
        }
        let view = match (request.compare, request.view) {
            (Some(other), _) => View::Compare(Box::new(other)),
            (None, "logical") => View::Logical,
            (None, "memory") => View::Memory,
            (None, "both") => View::Both,
            (None, "word") => View::Word,
            (None, "steps") => return Ok(Self(Scene::steps(tiled, &options)?)),
            (None, other) => return Err(unknown("view", other, "'logical', 'memory', 'both', 'word' or 'steps'")),
        };
        Ok(Self(Scene::of(tiled, &options.with_view(view))?))
    }
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
        self.0.to_svg()
    }

    /// The picture as lines of text.
    ///
    /// Args:
    ///     width: the number of columns to fit into, where the widest cell allows it.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,2]").draw().to_text(width=60).splitlines()[0]
    ///     'f32[2,2]{1,0}'
    #[pyo3(signature = (*, width = 100))]
    fn to_text(&self, width: usize) -> String {
        self.0.to_terminal(width)
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
        let png = py.detach(|| self.0.to_png(scale))?;
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
            Some("svg") => self.0.to_svg().into_bytes(),
            Some("txt") => self.0.to_terminal(100).into_bytes(),
            Some("png") => py.detach(|| self.0.to_png(2.0))?,
            _ => {
                let message = format!("{} ends in neither .svg nor .png nor .txt", path.display());
                return Err(Error::new(Class::Draw, "unknown_format", message));
            }
        };
        // Written by Python, whose `OSError` names the file.
        py.import("pathlib")?.call_method1("Path", (path,))?.call_method1("write_bytes", (bytes.as_slice(),))?;
        Ok(())
    }

    fn _repr_svg_(&self) -> String {
        self.0.to_svg()
    }

    fn __str__(&self) -> String {
        self.0.to_terminal(100)
    }

    fn __repr__(&self) -> String {
        let text = self.0.to_terminal(100);
        format!("<Drawing of {}>", text.lines().next().unwrap_or_default())
    }
}
