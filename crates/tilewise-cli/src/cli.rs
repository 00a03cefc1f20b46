//! The commands and their options.

use crate::{
    output::Format,
    values::{Limit, Slice, parse_size},
};
use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use clap_complete::Shell;
use std::{path::PathBuf, str::FromStr};
use tilewise::{
    BitcastAs,
    interop::Notation,
    tpu::{Generation, memory_space_name},
};
use tilewise_report::StepLanguage;

/// XLA's tiled layouts: explain a shape, find an element, audit a TPU program for padding.
#[derive(Parser)]
#[command(name = "tilewise", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) color: colorchoice_clap::Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Explain a shape and its layout in words and numbers
    Show(ShowArgs),
    /// Find the offset of an element, or the element at an offset
    Index(IndexArgs),
    /// Decide whether the bytes of one array can be read as another
    Bitcast(BitcastArgs),
    /// Say in words how two shapes and their layouts differ
    Diff(DiffArgs),
    /// Show how the buffer is made from the logical array: pad, reshape, transpose
    Steps(StepsArgs),
    /// Draw a layout, in the terminal or as SVG or PNG
    Draw(DrawArgs),
    /// Predict the layout a TPU generation picks for an array, and its physical size
    Predict(PredictArgs),
    /// Convert a real buffer from one layout to another
    Relayout(RelayoutArgs),
    /// Find the padding waste of a compiled program
    Audit(AuditArgs),
    /// Explain a pasted TPU out-of-memory message: what is wasted, why, and what to change
    Explain(ExplainArgs),
    /// List the tile formats of other machines that SHAPE@NAME can name
    Tiles(TilesArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

#[derive(Args)]
pub(crate) struct FormatArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// Shapes in XLA's notation, such as 'bf16[300,500]{1,0:T(8,128)(2,1)}', SHAPE@NAME with a
    /// name that `tilewise tiles` lists, or proto:HEX; - reads one per line
    #[arg(required = true, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// Print the layout in another system's notation
    #[arg(long = "as", value_parser = notations(), value_name = "NOTATION")]
    pub(crate) notation: Option<Notation>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: ShowFormat,
}

fn notations() -> impl TypedValueParser<Value = Notation> {
    let value = |notation: &Notation| PossibleValue::new(notation.as_str()).help(notation.in_words());
    PossibleValuesParser::new(Notation::ALL.iter().map(value)).try_map(|name| name.parse())
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// Text for people
    #[default]
    Human,
    /// JSON Lines: one object per item
    Json,
    /// One ShapeProto per line, in hexadecimal
    Proto,
}

impl From<ShowFormat> for Format {
    fn from(format: ShowFormat) -> Self {
        match format {
            ShowFormat::Json => Self::Json,
            ShowFormat::Human | ShowFormat::Proto => Self::Human,
        }
    }
}

#[derive(Args)]
pub(crate) struct StepsArgs {
    /// Shapes with their layout; - reads one per line
    #[arg(required = true, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// Language of the steps
    #[arg(long = "as", value_enum, default_value_t, value_name = "LANGUAGE")]
    pub(crate) rendering: Rendering,
    /// Draw the steps as a strip of pictures
    #[arg(long, conflicts_with = "rendering")]
    pub(crate) draw: bool,
    /// Write the strip to a file, .svg or .png; - is standard output, SVG
    #[arg(short, long = "out", value_name = "FILE", requires = "draw")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rendering {
    /// One line per step, in words
    #[default]
    Text,
    /// A NumPy program, in both directions
    Numpy,
    /// An einops program, in both directions
    Einops,
    /// MLIR affine maps from the logical index to the physical index and to the offset
    Mlir,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise index 'f32[3,5]{1,0:T(2,2)}' 2,3
  tilewise index 'f32[3,5]{1,0:T(2,2)}' --offset 17
  printf 'f32[3,5]{1,0:T(2,2)}\\t@17\\n' | tilewise index -")]
pub(crate) struct IndexArgs {
    /// A shape with its layout; - reads lines SHAPE<TAB>2,3 or SHAPE<TAB>@17
    #[arg(value_name = "SHAPE")]
    pub(crate) shape: String,
    /// Logical indices, such as 2,3; '' for a scalar
    #[arg(value_name = "INDEX")]
    pub(crate) indices: Vec<String>,
    /// Offsets, in elements, whose index to find
    #[arg(long = "offset", value_name = "N", num_args = 1..)]
    pub(crate) offsets: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise bitcast 'bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}' 'bf16[8,512,768]{1,2,0:T(8,128)(2,1)}'
  tilewise bitcast 'f32[64,128]{1,0:T(8,128)}' 'f32[64,128]{0,1:T(8,128)}' --as reshape
  tilewise bitcast 'bf16[8,512,768]{1,2,0:T(8,128)(2,1)}' --reshape 8,512,12,64
  printf 'f32[8]\\tf32[2,4]\\n' | tilewise bitcast -

The exit status is 1 if it is no bitcast.")]
pub(crate) struct BitcastArgs {
    /// The array whose bytes there are; - reads lines FROM<TAB>TO
    #[arg(value_name = "FROM")]
    pub(crate) from: String,
    /// The array to read them as
    #[arg(value_name = "TO", conflicts_with_all = ["reshape", "transpose"])]
    pub(crate) to: Option<String>,
    /// What the second array is wanted as
    #[arg(long = "as", value_enum, default_value_t, value_name = "WHAT", conflicts_with_all = ["reshape", "transpose"])]
    pub(crate) reading: Reading,
    /// Find the layouts in which a reshape to these dimensions is free
    #[arg(long, value_name = "DIMENSIONS", conflicts_with = "transpose")]
    pub(crate) reshape: Option<String>,
    /// Find the layout in which a transpose is free, given the order of the dimensions
    #[arg(long, value_name = "ORDER")]
    pub(crate) transpose: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reading {
    /// Anything that needs no bytes to move
    #[default]
    Any,
    /// The same elements in the same row-major order
    Reshape,
    /// The same elements with the dimensions in another order
    Transpose,
}

impl From<Rendering> for StepLanguage {
    fn from(rendering: Rendering) -> Self {
        match rendering {
            Rendering::Text => Self::Text,
            Rendering::Numpy => Self::Numpy,
            Rendering::Einops => Self::Einops,
            Rendering::Mlir => Self::Mlir,
        }
    }
}

impl From<Reading> for BitcastAs {
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::Any => Self::Any,
            Reading::Reshape => Self::Reshape,
            Reading::Transpose => Self::Transpose,
        }
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise diff 'bf16[300,500]{1,0:T(8,128)(2,1)}' 'bf16[300,500]{0,1:T(8,128)(2,1)S(1)}'

The exit status is 1 if there is a difference.")]
pub(crate) struct DiffArgs {
    /// A shape; - reads lines A<TAB>B
    #[arg(value_name = "A")]
    pub(crate) first: String,
    /// Another
    #[arg(value_name = "B")]
    pub(crate) second: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise draw 'f32[3,5]{1,0:T(2,2)}' --highlight 2,3
  tilewise draw 'bf16[16,256]{1,0:T(8,128)(2,1)}' --view word -o words.svg
  tilewise draw 'f32[8,128]{1,0}' 'f32[8,128]{0,1}'     two layouts of one array compared")]
pub(crate) struct DrawArgs {
    /// A shape with its layout, of a tuple each array; give a second one to compare them
    #[arg(required = true, num_args = 1..=2, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// Write the picture to a file, .svg or .png; - is standard output, SVG
    #[arg(short, long = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// What to draw [default: both, or compare if there are two shapes]
    #[arg(long, value_enum, value_name = "VIEW")]
    pub(crate) view: Option<DrawView>,
    /// Draw the plane at this index of a dimension, such as 0=3 or -1=3
    #[arg(long = "slice", value_name = "DIM=N", allow_hyphen_values = true)]
    pub(crate) slices: Vec<Slice>,
    /// Follow one element, such as 2,3: its tile, its index in the tile, its offset
    #[arg(long, value_name = "INDEX")]
    pub(crate) highlight: Option<String>,
    /// Colours for a light or dark background
    #[arg(long, value_enum, default_value_t, value_name = "THEME")]
    pub(crate) theme: DrawTheme,
    /// Pixels of a PNG per unit of the picture
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR")]
    pub(crate) scale: f32,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawView {
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

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawTheme {
    /// Follow the viewer's colour scheme (SVG); otherwise light
    #[default]
    Auto,
    /// Dark on light
    Light,
    /// Light on dark
    Dark,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise predict 'bf16[2048,1,2048,128]' --tpu v5e
  tilewise predict 'f32[400000,12]{1,0}' --tpu all     tiles for the given order")]
pub(crate) struct PredictArgs {
    /// Shapes without a layout, or with an order such as {0,1}; - reads one per line
    #[arg(required = true, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// TPU generation: v2 v3 v4 v5e v5p v6e v7x, or all
    #[arg(long, value_name = "TPU")]
    pub(crate) tpu: Tpu,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// One generation, or all of them, a row each.
#[derive(Clone, Copy)]
pub(crate) enum Tpu {
    One(Generation),
    All,
}

impl FromStr for Tpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        parse_generation(text).map(Self::One)
    }
}

fn parse_generation(text: &str) -> Result<Generation, String> {
    text.parse().map_err(|error: tilewise::Error| match error.help() {
        Some(help) => format!("{error}: {help}"),
        None => error.to_string(),
    })
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise relayout rows.bin tiles.bin --from 'f32[300,500]' --to 'f32[300,500]{1,0:T(8,128)}'
  tilewise relayout rows.npy tiles.bin --to 'f32[300,500]{1,0:T(8,128)}' --check
  tilewise relayout model.safetensors w.npy --name w --to 'f32[300,500]{0,1}'

Files named .npy and .safetensors have headers; all others are raw bytes.
OUT is replaced only after everything is written.")]
pub(crate) struct RelayoutArgs {
    /// The file to read: raw bytes, .npy or .safetensors
    #[arg(value_name = "IN")]
    pub(crate) source: PathBuf,
    /// The file to write: raw bytes, .npy or .safetensors
    #[arg(value_name = "OUT")]
    pub(crate) destination: PathBuf,
    /// Shape and layout of the array in IN [default: from the header of IN]
    #[arg(long, value_name = "SHAPE")]
    pub(crate) from: Option<String>,
    /// The same shape with the layout to write to OUT
    #[arg(long, value_name = "SHAPE")]
    pub(crate) to: String,
    /// Name of the tensor in a .safetensors file
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Number of threads, at most one per CPU [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Verify every element before replacing OUT
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the plan: the loops around the kernel
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

fn parse_memory_space(text: &str) -> Result<u8, String> {
    let by_name = || (0..=u8::MAX).find(|space| memory_space_name(*space) == text);
    text.parse().ok().or_else(by_name).ok_or_else(|| format!("`{text}` is no memory space such as hbm or vmem"))
}

#[derive(Args)]
#[command(after_help = "The exit status is 1 if the limit of --fail-above is exceeded, and 2 if a file can't be read.")]
pub(crate) struct AuditArgs {
    /// Compiled programs: HLO text, protos, buffer assignments, plain or gzip, or a folder of them; - reads one from
    /// standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write a file: .svg or .png draws the memory plan, .html is the whole report as a page
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Memory space to draw: hbm, vmem, … or its number
    #[arg(long, default_value = "hbm", value_name = "SPACE", value_parser = parse_memory_space, requires = "out")]
    pub(crate) memory_space: u8,
    /// Colours of the picture, for a light or dark background
    #[arg(long, value_enum, default_value_t, value_name = "THEME", requires = "out")]
    pub(crate) theme: DrawTheme,
    /// List every buffer, not only those with the most padding
    #[arg(long)]
    pub(crate) all: bool,
    /// TPU generation, to check whether the program fits: v2 v3 v4 v5e v5p v6e v7x
    #[arg(long, value_name = "TPU", value_parser = parse_generation)]
    pub(crate) tpu: Option<Generation>,
    /// Exit with status 1 if the padding in HBM exceeds a share of its physical bytes (10%) or a size (1GiB)
    #[arg(long, value_name = "LIMIT")]
    pub(crate) fail_above: Option<Limit>,
    /// Size of HBM that the program must fit, such as 16GiB [default: that of --tpu]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) hbm_limit: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: AuditFormat,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// Text for people
    #[default]
    Human,
    /// JSON Lines: one object per program
    Json,
    /// One row per buffer
    Csv,
    /// One row per buffer, as a Parquet file
    #[cfg(feature = "parquet")]
    Parquet,
    /// A page in one file, to look at in a browser
    Html,
    /// The memory plan as a trace, for Perfetto and chrome://tracing
    Trace,
    /// The memory plan as a snapshot (pickle), for pytorch.org/memory_viz
    MemoryViz,
}

impl From<AuditFormat> for Format {
    fn from(format: AuditFormat) -> Self {
        match format {
            AuditFormat::Json => Self::Json,
            _ => Self::Human,
        }
    }
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// Files that contain a message each, among other text or alone; - reads standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// TPU generation, where the tiles in the message do not show it: v2 v3 v4 v5e v5p v6e v7x
    #[arg(long, value_name = "TPU", value_parser = parse_generation)]
    pub(crate) tpu: Option<Generation>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise show 'bf16[100,300]@tt-tile'
  tilewise relayout w.npy w.bin --to 'f32[64,32,3,3]@onednn-OIhw4i16o4i'")]
pub(crate) struct TilesArgs {
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}
