//! What can be asked on the command line.

use crate::{
    output::Format,
    values::{Limit, Slice, parse_size},
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::{path::PathBuf, str::FromStr};
use tilewise::tpu::Generation;

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
    /// Where an element lies, or what lies at an offset
    Index(IndexArgs),
    /// How the buffer is made from the logical array: pad, reshape, transpose
    Steps(StepsArgs),
    /// The picture of a layout, in the terminal or as SVG or PNG
    Draw(DrawArgs),
    /// The layout a TPU generation picks for an array, and what it really takes
    Predict(PredictArgs),
    /// Convert a real buffer from one layout to another
    Relayout(RelayoutArgs),
    /// Find the padding waste of a compiled program
    Audit(AuditArgs),
    /// Explain a pasted TPU out-of-memory message: what is wasted, why, and what to change
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

#[derive(Args)]
pub(crate) struct FormatArgs {
    /// How results are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// Shapes in XLA's notation, such as 'bf16[300,500]{1,0:T(8,128)(2,1)}', or proto:HEX; - reads one a line
    #[arg(required = true, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// How results are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: ShowFormat,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// For people
    #[default]
    Human,
    /// JSON Lines: one object per item
    Json,
    /// A ShapeProto a line, in hex
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
    /// Shapes with their layout; - reads one a line
    #[arg(required = true, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// In which language
    #[arg(long = "as", value_enum, default_value_t, value_name = "LANGUAGE")]
    pub(crate) rendering: Rendering,
    /// Draw them as a strip of pictures
    #[arg(long, conflicts_with = "rendering")]
    pub(crate) draw: bool,
    /// Write the strip to a file, .svg or .png
    #[arg(short, long = "out", value_name = "FILE", requires = "draw")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rendering {
    /// A line a step, in words
    #[default]
    Text,
    /// A NumPy program, both directions
    Numpy,
    /// An einops program, both directions
    Einops,
    /// MLIR affine maps of the index and of the offset
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
    /// Logical indices, such as 2,3; '' is a scalar's
    #[arg(value_name = "INDEX")]
    pub(crate) indices: Vec<String>,
    /// Offsets in elements to find the index of
    #[arg(long = "offset", value_name = "N", num_args = 1..)]
    pub(crate) offsets: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tilewise draw 'f32[3,5]{1,0:T(2,2)}' --highlight 2,3
  tilewise draw 'bf16[16,256]{1,0:T(8,128)(2,1)}' --view word -o words.svg
  tilewise draw 'f32[8,128]{1,0}' 'f32[8,128]{0,1}'     two layouts of one array compared")]
pub(crate) struct DrawArgs {
    /// A shape with its layout; a second one is compared with it
    #[arg(required = true, num_args = 1..=2, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// Write the picture to a file, .svg or .png
    #[arg(short, long = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// What is drawn [default: both, or compare with two shapes]
    #[arg(long, value_enum, value_name = "VIEW")]
    pub(crate) view: Option<DrawView>,
    /// The index along a dimension that is not drawn, such as 0=3 or -1=3
    #[arg(long = "slice", value_name = "DIM=N", allow_hyphen_values = true)]
    pub(crate) slices: Vec<Slice>,
    /// Trace one element, such as 2,3: its tile, its place inside, its offset
    #[arg(long, value_name = "INDEX")]
    pub(crate) highlight: Option<String>,
    /// Colours for light or dark paper; auto lets an SVG follow its reader
    #[arg(long, value_enum, default_value_t, value_name = "THEME")]
    pub(crate) theme: DrawTheme,
    /// Pixels of a PNG for each unit of the picture
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR")]
    pub(crate) scale: f32,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawView {
    /// The array, each cell with its offset
    Logical,
    /// Memory in order, padding white
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
    /// As the reader's screen is
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
  tilewise predict 'f32[400000,12]{1,0}' --tpu all     the tiles for this order")]
pub(crate) struct PredictArgs {
    /// Shapes without a layout, or with an order such as {0,1}; - reads one a line
    #[arg(required = true, value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// The TPU generation: v2 v3 v4 v5e v5p v6e v7x, or all
    #[arg(long, value_name = "TPU")]
    pub(crate) tpu: Tpu,
    /// Say what to change so that it takes less
    #[arg(long)]
    pub(crate) suggest: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// One generation, or a row for each.
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

A .npy and a .safetensors have headers, all other files are raw bytes. OUT is replaced when everything is written.")]
pub(crate) struct RelayoutArgs {
    /// The file to read: raw bytes, .npy or .safetensors
    #[arg(value_name = "IN")]
    pub(crate) source: PathBuf,
    /// The file to write: raw bytes, .npy or .safetensors
    #[arg(value_name = "OUT")]
    pub(crate) destination: PathBuf,
    /// The array in IN and its layout [default: what IN's header says]
    #[arg(long, value_name = "SHAPE")]
    pub(crate) from: Option<String>,
    /// The same array in the layout that OUT is to have
    #[arg(long, value_name = "SHAPE")]
    pub(crate) to: String,
    /// The tensor's name in a .safetensors
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Threads to use, no more than there are CPUs [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Before OUT gets its name, look every element up in it and compare it with IN
    #[arg(long)]
    pub(crate) check: bool,
    /// Say how: the loops around the innermost work
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Args)]
#[command(after_help = "The exit status is 1 if --fail-above was exceeded, and 2 if a file could not be read.")]
pub(crate) struct AuditArgs {
    /// HLO text of compiled programs, plain or gzip; - reads one from standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// List every buffer, not only those with the most padding
    #[arg(long)]
    pub(crate) all: bool,
    /// The TPU generation it is for: prices the fixes, and says whether the program fits: v2 v3 v4 v5e v5p v6e v7x
    #[arg(long, value_name = "TPU", value_parser = parse_generation)]
    pub(crate) tpu: Option<Generation>,
    /// Exit with status 1 if the padding in HBM is above this: a share of the bytes taken (10%) or a size (1GiB)
    #[arg(long, value_name = "LIMIT")]
    pub(crate) fail_above: Option<Limit>,
    /// Say whether the program fits so much HBM, such as 16GiB; --tpu gives that of the generation
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) hbm_limit: Option<u64>,
    /// How results are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: AuditFormat,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// For people
    #[default]
    Human,
    /// JSON Lines: one object per program
    Json,
    /// A row per buffer
    Csv,
}

impl From<AuditFormat> for Format {
    fn from(format: AuditFormat) -> Self {
        match format {
            AuditFormat::Json => Self::Json,
            AuditFormat::Human | AuditFormat::Csv => Self::Human,
        }
    }
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// A file that holds the message, with whatever is around it; - or nothing reads standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The TPU generation it is from, where the message's tiles do not tell: v2 v3 v4 v5e v5p v6e v7x
    #[arg(long, value_name = "TPU", value_parser = parse_generation)]
    pub(crate) tpu: Option<Generation>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete in
    pub(crate) shell: Shell,
}
