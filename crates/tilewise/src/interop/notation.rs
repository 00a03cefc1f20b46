//! Each notation by its name, in both directions.

use super::{
    CuTe, JaxLayout, PjrtTiled, Strides, TpuTiled, TpuVpad, einops, layout_of_affine_map, list, mlir,
    modes::not_expressible, strides,
};
use crate::{Error, ErrorKind, Layout, Shape, Tiled};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, str::FromStr};

/// Another system's notation for layouts, by its name in `tilewise show --as`.
///
/// ```
/// use tilewise::{Shape, Tiled, interop::Notation};
///
/// let shape: Shape = "bf16[64,512]{1,0:T(8,128)(2,1)}".parse()?;
/// let text = Notation::Cute.write(&Tiled::new(&shape)?)?;
/// assert_eq!(text, "((2,4,8),(128,4)):((1,256,4096),(2,1024))");
/// assert_eq!(Notation::Cute.read(&text, &"bf16[64,512]".parse()?)?, shape);
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notation {
    /// The forms of PJRT's C API: serialized text, tiled, byte strides.
    Pjrt,
    /// JAX's `Layout`.
    Jax,
    /// MLIR affine maps from the logical index to the physical index and to the offset.
    Mlir,
    /// An MLIR memref type, strided or with an affine map.
    Memref,
    /// Mosaic's `#tpu.tiled`, and `#tpu.vpad` of the registers it fills.
    Mosaic,
    /// A NumPy expression with `as_strided`.
    Numpy,
    /// DLPack's shape and strides.
    Dlpack,
    /// CuTe's `shape:stride`.
    Cute,
    /// An einops program, in both directions.
    Einops,
}

/// Maximum number of tiles × axes of a derivation that is written: each step names the bounds of every axis.
const LONGEST: usize = 100_000;

impl Notation {
    /// Every notation.
    pub const ALL: &'static [Self] = &[
        Self::Pjrt,
        Self::Jax,
        Self::Mlir,
        Self::Memref,
        Self::Mosaic,
        Self::Numpy,
        Self::Dlpack,
        Self::Cute,
        Self::Einops,
    ];

    /// Its name, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pjrt => "pjrt",
            Self::Jax => "jax",
            Self::Mlir => "mlir",
            Self::Memref => "memref",
            Self::Mosaic => "mosaic",
            Self::Numpy => "numpy",
            Self::Dlpack => "dlpack",
            Self::Cute => "cute",
            Self::Einops => "einops",
        }
    }

    /// A short description.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Pjrt => "The forms of PJRT's C API: serialized text, tiled, byte strides",
            Self::Jax => "JAX's Layout",
            Self::Mlir => "MLIR affine maps from the logical index to the physical index and to the offset",
            Self::Memref => "An MLIR memref type, strided or with an affine map",
            Self::Mosaic => "Mosaic's #tpu.tiled, and #tpu.vpad of the registers it fills",
            Self::Numpy => "A NumPy expression with as_strided",
            Self::Dlpack => "DLPack's shape and strides",
            Self::Cute => "CuTe's shape:stride",
            Self::Einops => "An einops program, in both directions",
        }
    }

    /// An array's layout in this notation.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`], with the reason.
    pub fn write(self, tiled: &Tiled) -> Result<String, Error> {
        Ok(match self {
            Self::Pjrt => pjrt(tiled),
            Self::Jax => tiled.jax()?.to_string(),
            Self::Mlir => {
                let too_long = || not_expressible("the affine map of these nested tiles has more than 10,000 terms");
                let physical = tiled.affine_map().ok_or_else(too_long)?;
                let offset = tiled.affine_offset_map().ok_or_else(too_long)?;
                format!(
                    "// logical index → index in memory, major to minor\n{physical}\n// logical index → offset\n{offset}"
                )
            }
            Self::Memref => tiled.memref()?,
            Self::Mosaic => {
                let memref = tiled.mosaic()?;
                // If no load fills registers with the tiles, there is only the layout in memory.
                let vector = memref.vpad(tiled.stored_bits()).map(|vector| format!("\n{vector}"));
                format!("{memref}{}", vector.unwrap_or_default())
            }
            Self::Numpy => tiled.as_strided()?,
            Self::Dlpack => tiled.strides()?.dlpack(),
            Self::Cute => tiled.cute()?.to_string(),
            Self::Einops => {
                let tiles = tiled.array().layout().map_or(0, |layout| layout.tiles().len());
                if tiles.saturating_mul(tiled.physical_dimensions().len()) > LONGEST {
                    return Err(not_expressible("these tiles make more steps than can be printed usefully"));
                }
                tiled.derivation().einops().to_string().trim_end().to_string()
            }
        })
    }

    /// The array in the layout that a text describes, in the form of [`write`](Self::write) or any one of its lines.
    ///
    /// The array's `E(n)` and `S(n)` stay if the notation doesn't express them.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`], with the reason, for a text in another notation, of another array, or that
    /// describes no layout; as for [`Shape::with_layout`].
    ///
    /// ```
    /// use tilewise::{Shape, interop::Notation};
    ///
    /// let shape: Shape = "f32[3,5]".parse()?;
    /// let read = |notation: Notation, text| notation.read(text, &shape).map(|shape| shape.to_string());
    /// assert_eq!(read(Notation::Dlpack, "shape = {3, 5}, strides = {1, 3}")?, "f32[3,5]{0,1}");
    /// assert_eq!(read(Notation::Memref, "memref<3x5xf32, strided<[8, 1]>>")?, "f32[3,5]{1,0:T(8)}");
    /// assert_eq!(read(Notation::Einops, "(y y1) x -> (y x y1), y1=2")?, "f32[3,5]{1,0:T(2,1)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn read(self, text: &str, shape: &Shape) -> Result<Shape, Error> {
        let array = shape.array_or_error()?;
        let bounds: Vec<u64> =
            array.dimensions().iter().map(|dimension| dimension.bound().unwrap_or(u64::MAX)).collect();
        let text = text.trim();
        let layout = match self {
            Self::Pjrt => return read_pjrt(text, shape),
            Self::Jax => text.parse::<JaxLayout>()?.layout()?,
            Self::Mlir => read_map(text, &bounds)?,
            Self::Memref => return read_memref(text, shape, &bounds),
            Self::Mosaic => read_mosaic(text, &bounds)?,
            Self::Numpy => of_modes(&strides::of_as_strided(text)?, &bounds)?,
            Self::Dlpack => of_strides(&strides::of_dlpack(text)?, &bounds)?,
            Self::Cute => of_modes(&text.parse()?, &bounds)?,
            Self::Einops => einops::of_program(text, &bounds)?,
        };
        let says_bits = self == Self::Jax;
        relaid(shape, layout, says_bits, None)
    }
}

/// The array with that layout, and the parts of its own layout that the notation doesn't express.
fn relaid(shape: &Shape, mut layout: Layout, says_bits: bool, memory_space: Option<u8>) -> Result<Shape, Error> {
    let own = shape.layout();
    if let (false, Some(bits)) = (says_bits, own.and_then(Layout::element_size_in_bits)) {
        layout = layout.with_element_size_in_bits(bits)?;
    }
    let space = memory_space.or_else(|| own.map(Layout::memory_space)).unwrap_or(0);
    shape.clone().with_layout(layout.with_memory_space(space)?)
}

/// The three forms of the C API; a form that can't express the layout gives the reason.
fn pjrt(tiled: &Tiled) -> String {
    let or_why = |text: Result<String, Error>| text.unwrap_or_else(|error| format!("none: {error}"));
    let fields = or_why(tiled.pjrt().map(|fields| fields.to_string()));
    let strides = or_why(tiled.byte_strides().map(|strides| format!("byte_strides = {{{}}}", list(&strides))));
    let text = tiled.array().layout().map_or_else(String::new, Layout::to_string);
    format!("serialized  {text}\ntiled       {fields}\nstrides     {strides}")
}

fn read_pjrt(text: &str, shape: &Shape) -> Result<Shape, Error> {
    let line = text.lines().next().unwrap_or_default();
    if let Some(fields) = line.strip_prefix("tiled").or_else(|| line.starts_with("minor_to_major").then_some(line)) {
        return relaid(shape, fields.parse::<PjrtTiled>()?.layout()?, false, None);
    }
    let serialized = line.strip_prefix("serialized").unwrap_or(line).trim();
    shape.clone().with_layout(Layout::of_text(serialized, shape)?)
}

fn read_memref(text: &str, shape: &Shape, bounds: &[u64]) -> Result<Shape, Error> {
    let memref = strides::Memref::of(text)?;
    if memref.dimensions != bounds {
        return Err(other_array(&memref.dimensions, bounds));
    }
    let layout = match memref.layout {
        "" => Layout::row_major(bounds.len()),
        tiled if tiled.starts_with("#tpu.") => read_mosaic(tiled, bounds)?,
        map if map.starts_with("affine_map<") => mlir::modes_of_offset_map(map, bounds)?.layout()?,
        strided => of_strides(&Strides::new(bounds, strides::of_strided(strided)?)?, bounds)?,
    };
    relaid(shape, layout, false, Some(memref.memory_space))
}

fn read_mosaic(text: &str, bounds: &[u64]) -> Result<Layout, Error> {
    let line = text.lines().next().unwrap_or_default();
    if line.starts_with("#tpu.vpad") {
        return line.parse::<TpuVpad>()?.layout(bounds.len());
    }
    line.parse::<TpuTiled>()?.layout(bounds)
}

fn of_strides(strides: &Strides, bounds: &[u64]) -> Result<Layout, Error> {
    if strides.dimensions != bounds {
        return Err(other_array(&strides.dimensions, bounds));
    }
    strides.layout()
}

/// Modes may go past the bounds, by less than a tile.
fn of_modes(cute: &CuTe, bounds: &[u64]) -> Result<Layout, Error> {
    let count = |modes: &Vec<super::Mode>| modes.iter().fold(1, |count: u64, mode| count.saturating_mul(mode.count));
    let counts: Vec<u64> = cute.modes.iter().map(count).collect();
    if counts.len() != bounds.len() || counts.iter().zip(bounds).any(|(count, bound)| count < bound) {
        return Err(other_array(&counts, bounds));
    }
    cute.layout()
}

fn other_array(read: &[u64], bounds: &[u64]) -> Error {
    not_expressible(format!("the text is of an array [{}], this one is [{}]", list(read), list(bounds)))
}

/// Reads the map to the offset, which has more information, or else the map to the index in memory.
fn read_map(text: &str, bounds: &[u64]) -> Result<Layout, Error> {
    let maps = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    match maps().find(|map| mlir::results_of(map) == 1) {
        Some(offset) => mlir::modes_of_offset_map(offset, bounds)?.layout(),
        None => layout_of_affine_map(maps().next().unwrap_or_default()),
    }
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Notation {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::UnknownNotation`] for any other name.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|notation| notation.as_str() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|notation| notation.as_str()).collect();
            Error::new(ErrorKind::UnknownNotation, format!("`{name}` isn't a notation"))
                .with_help(format!("one of {}", names.join(", ")))
        })
    }
}
