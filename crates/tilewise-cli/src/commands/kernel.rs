//! `tilewise kernel`: the VMEM and SMEM of a Pallas kernel.

use super::{draw::write_budget, python::Allowing};
use crate::{
    input::read_bytes,
    output::{FormatArgs, Output, Status, terminal::terminal},
    values::Tpu,
};
use std::{
    io,
    path::{Path, PathBuf},
};
use tilewise::tpu::Generation;
use tilewise_audit::Failure;
use tilewise_kernel::{Kernel, Limits, parts};
use tilewise_report::{
    KernelBudget, OperandCost,
    style::{STRONG, styled},
};

/// The most bytes of a text of kernels, each of a few lines.
const LONGEST: u64 = 16 << 20;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise kernel matmul.kernel --tpu all
  tilewise kernel matmul.kernel --operand 'bf16[8192,8192]{0,1:T(8,128)(2,1)}'
  tilewise kernel mine.py:make --tpu v6e --set rows=256 --compile
  tilewise kernel mine.py:make --tpu v6e --space rows=128,256,512 --space columns=1024,2048

A kernel is a text:
  tpu v6e
  grid 16,16,8
  in  bf16[8192,8192] block 1024,1024 @ 0,2
  in  s4[8192,8192] block 1024,1024 @ 2,1 buffered 1
  in  f32[64,128] any
  out bf16[8192,8192] block 1024,1024 @ 0,1
  scratch vmem f32[1024,1024]
  limit 64MiB
Behind @ stands the axis of the grid that chooses the block along each dimension; - is none. Lines `prefetch
s32[24,64]`, `scratch smem s32[8]`, `scratch dma`, `name NAME` and `body 2MiB`, a guess of what the body takes, may be
added. Lines of --- divide several kernels.

FILE.py:FACTORY is called with the settings, and returns the function whose kernels are meant, and its
arguments: (f, x, y). It is traced by the Python package: pip install 'tilewise[tpu]'.

The exit status is 1 if a kernel declares more than its limit, or has a block that can't be
compiled; with --operand, if the operand is copied.")]
pub(crate) struct Args {
    /// File with the text of kernels, or FILE.py:FACTORY; - reads standard input
    #[arg(default_value = "-", value_name = "FILE")]
    file: PathBuf,
    /// TPU generation, instead of the one in the text: v3 v4 v5e v5p v6e v7x, or all
    #[arg(long, value_name = "TPU")]
    tpu: Option<Tpu>,
    /// Draw the kernel's VMEM with its windows to a file, .svg or .png; - is standard output, SVG
    #[arg(short, long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Say what an input of the kernel costs if its producer leaves it in this shape and layout: how much XLA copies in each call,
    /// and the view that makes it free
    #[arg(long, value_name = "SHAPE", conflicts_with = "out")]
    operand: Option<String>,
    /// Of a FILE.py:FACTORY: ask the TPU compiler about each kernel by itself; no TPU is needed
    #[arg(long)]
    compile: bool,
    /// Of a FILE.py:FACTORY: a setting
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Of a FILE.py:FACTORY: sizes to choose from; prints which to try, best first
    #[arg(long, value_name = "NAME=A,B,C")]
    space: Vec<String>,
    #[command(flatten)]
    allowed: Allowing,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    if args.compile || !args.set.is_empty() || !args.space.is_empty() {
        let failure = Failure::new("usage", "--compile, --set and --space are of a function, and this is a text")
            .with_help("a text has no body to compile: give the function, as in mine.py:make");
        return output.failure(&args.file.to_string_lossy(), failure);
    }
    let text = read_bytes(&args.file, LONGEST).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| Failure::new("not_utf8", "the text is not UTF-8").in_file(&args.file))
    });
    let text = match text {
        Ok(text) => text,
        Err(failure) => return output.failure(&args.file.to_string_lossy(), failure),
    };
    if let Some(path) = &args.out {
        return draw(args, text.trim_end(), path, output);
    }
    for part in parts(&text) {
        let input = part.trim_end();
        let kernel: Kernel = match input.parse() {
            Ok(kernel) => kernel,
            Err(error) => {
                output.failure(input, Failure::from(error))?;
                continue;
            }
        };
        if let Some(operand) = &args.operand {
            let generation = match args.tpu {
                Some(Tpu::One(generation)) => Some(generation),
                _ => kernel.generation,
            };
            let cost = OperandCost::of(&kernel, operand, generation, &mut output.reader());
            if cost.as_ref().is_ok_and(|cost| cost.copied_bytes() > 0) {
                output.raise(Status::Flagged);
            }
            output.item(operand, cost)?;
            continue;
        }
        match args.tpu {
            Some(Tpu::All) => on_all(&kernel, input, output)?,
            Some(Tpu::One(generation)) => on_one(&kernel, Some(generation), input, output)?,
            None => on_one(&kernel, None, input, output)?,
        }
    }
    Ok(())
}

/// The picture of one kernel.
fn draw(args: &Args, input: &str, path: &Path, output: &mut Output) -> io::Result<()> {
    let generation = match args.tpu {
        Some(Tpu::One(generation)) => Some(generation),
        _ => None,
    };
    let several = || Failure::new("syntax", "a picture is of one kernel").with_help("give the text of one");
    let kernel = match parts(input).count() {
        0 | 1 => input.parse::<Kernel>().map_err(Failure::from),
        _ => Err(several()),
    };
    let drawn = kernel.and_then(|kernel| KernelBudget::of(&kernel, generation)).and_then(|budget| {
        let picture = budget.picture();
        if path.as_os_str() == "-" {
            return Ok(Some(picture.to_svg(&terminal().options())));
        }
        write_budget(&picture, &terminal().options(), path).map(|()| None)
    });
    match drawn {
        Ok(Some(svg)) => output.raw(|out| out.write_all(svg.as_bytes())),
        Ok(None) => output.note(&format!("wrote {}", path.display())),
        Err(failure) => output.failure(input, failure),
    }
}

fn on_one(kernel: &Kernel, generation: Option<Generation>, input: &str, output: &mut Output) -> io::Result<()> {
    let budget = KernelBudget::of(kernel, generation);
    if budget.as_ref().is_ok_and(KernelBudget::is_refused) {
        output.raise(Status::Flagged);
    }
    output.item(input, budget)
}

/// A row for each generation that kernels were compiled for.
fn on_all(kernel: &Kernel, input: &str, output: &mut Output) -> io::Result<()> {
    let known = Generation::ALL.iter().copied().filter(|&generation| Limits::of(generation).is_some());
    for (position, generation) in known.enumerate() {
        let budget = KernelBudget::of(kernel, Some(generation));
        let is_failed = budget.is_err();
        output.item_as(input, budget, |budget, out| {
            if position == 0 {
                writeln!(out, "{}", styled(STRONG, kernel.name.as_deref().unwrap_or("kernel")))?;
                writeln!(out, "{}", KernelBudget::heading())?;
            }
            writeln!(out, "{}", budget.row())
        })?;
        // Other generations would give the same error.
        if is_failed && output.is_for_people() {
            break;
        }
    }
    output.text("\n")
}
