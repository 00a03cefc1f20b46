//! The VMEM and SMEM of a Pallas kernel: for people and as JSON.

use crate::{
    Terminal, WriteText,
    style::{
        FAINT, STRONG, Tone, bytes, bytes_both, cut, listed, percent, product, share, style_of, styled, waste_style,
    },
};
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use tilewise::tpu::Generation;
use tilewise_audit::Failure;
use tilewise_draw::{BudgetPart, BudgetPicture};
use tilewise_kernel::{
    Allocation, Array, Budget, BufferCause, Kernel, KernelFit, Limits, Memory, PaddedBlock, Unsupported, Window,
};

/// The answer of `tilewise kernel` to one kernel; `docs/json.md` lists the fields of its JSON.
///
/// # Examples
/// ```
/// use tilewise::tpu::Generation;
/// use tilewise_kernel::{Kernel, KernelFit};
/// use tilewise_report::KernelBudget;
///
/// let kernel: Kernel = "grid 8\nin f32[64,128] block 8,128 @ 0,-".parse()?;
/// let found = KernelBudget::of(&kernel, Some(Generation::V6e))?;
/// assert_eq!(found.budget.verdict, Some(KernelFit::DeclaredFits));
/// assert_eq!(found.budget.windows[0].buffers, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct KernelBudget {
    /// The kernel's name.
    pub name: Option<String>,
    /// The memory that it takes, and whether that fits.
    pub budget: Budget,
    /// Bytes of VMEM by the compiler's own account; `None` if it wasn't asked.
    measured_bytes: Option<u64>,
}

/// Its fields as JSON.
#[derive(Serialize)]
struct Fields<'a> {
    name: Option<&'a str>,
    tpu: &'static str,
    windows: Vec<WindowRow>,
    prefetched: Vec<AllocationRow>,
    scratch: Vec<AllocationRow>,
    vmem_bytes: u64,
    smem_bytes: u64,
    guess_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    default_bytes: Option<u64>,
    cap_bytes: Option<u64>,
    smem_limit_bytes: Option<u64>,
    limit_needed_bytes: Option<u64>,
    may_be_kept_bytes: u64,
    moved_bytes: Option<u64>,
    libtpu: Option<&'static str>,
    verdict: Option<&'static str>,
    sentence: String,
    remedy: Option<String>,
}

impl Serialize for KernelBudget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let budget = &self.budget;
        let fields = Fields {
            name: self.name.as_deref(),
            tpu: budget.generation.name(),
            windows: budget.windows.iter().map(WindowRow::of).collect(),
            prefetched: budget.prefetched.iter().map(AllocationRow::of).collect(),
            scratch: budget.scratch.iter().map(AllocationRow::of).collect(),
            vmem_bytes: budget.vmem_bytes,
            smem_bytes: budget.smem_bytes,
            guess_bytes: budget.guess_bytes,
            limit_bytes: budget.limit_bytes,
            default_bytes: budget.limits.map(|limits| limits.default_bytes),
            cap_bytes: budget.limits.map(|limits| limits.cap_bytes),
            smem_limit_bytes: budget.limits.map(|limits| limits.smem_bytes),
            limit_needed_bytes: budget.limit_needed(),
            may_be_kept_bytes: budget.bytes_that_may_be_kept(),
            moved_bytes: budget.moved_bytes(),
            libtpu: budget.limits.map(|_| Limits::LIBTPU),
            verdict: budget.verdict.map(KernelFit::as_str),
            sentence: self.verdict_in_words(),
            remedy: self.remedy(),
        };
        fields.serialize(serializer)
    }
}

#[derive(Serialize)]
struct WindowRow {
    operand: String,
    shape: String,
    block: Vec<Option<u64>>,
    memory_space: &'static str,
    tile: Option<Vec<u64>>,
    padded_block: Option<Vec<u64>>,
    padded_bytes: u64,
    padding_bytes: u64,
    buffers: u64,
    bytes: u64,
    moved_bytes: Option<u64>,
    cause: &'static str,
    may_be_kept: bool,
    unsupported: Option<String>,
    nearest_block: Option<Vec<u64>>,
}

#[derive(Serialize)]
struct AllocationRow {
    operand: String,
    shape: Option<String>,
    memory_space: &'static str,
    padded_block: Option<Vec<u64>>,
    bytes: u64,
}

impl KernelBudget {
    /// The budget of a kernel on a generation, by default the one that its text names.
    ///
    /// # Errors
    /// Without a generation, and those of [`Kernel::budget`].
    pub fn of(kernel: &Kernel, generation: Option<Generation>) -> Result<Self, Failure> {
        let generation = generation.or(kernel.generation).ok_or_else(without_generation)?;
        Ok(Self { name: kernel.name.clone(), budget: kernel.budget(generation)?, measured_bytes: None })
    }

    /// Sets the VMEM that the compiler measured: all that isn't declared is the body's, instead of the guess.
    #[must_use]
    pub fn measured(mut self, vmem_bytes: u64) -> Self {
        self.budget.guess_bytes = Some(vmem_bytes.saturating_sub(self.budget.vmem_bytes));
        self.measured_bytes = Some(vmem_bytes);
        self
    }

    /// Whether the compiler will certainly refuse it: it declares more than there is, or has an unsupported block.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.budget.verdict == Some(KernelFit::DoesNotFit)
            || self.budget.windows.iter().any(|window| window.unsupported.is_some())
    }

    /// The picture of its VMEM: each buffer of each window and its scratch, padding striped, the guess of the body, and the
    /// limit as a line.
    #[must_use]
    pub fn picture(&self) -> BudgetPicture {
        let windows = self.budget.windows.iter().filter(|row| row.operand.memory == Memory::Vmem);
        let windows =
            windows.map(|row| (&row.name, Some(&row.operand.array), row.padded.as_ref(), row.bytes, row.buffers));
        let scratch = self.budget.scratch.iter().filter(|row| row.memory == Memory::Vmem);
        let scratch = scratch.map(|row| (&row.name, row.array.as_ref(), row.padded.as_ref(), row.bytes, 1));
        let parts = windows.chain(scratch).map(|(name, array, padded, bytes, buffers)| {
            let times = if buffers > 1 { format!(" × {buffers}") } else { String::new() };
            let array = array.map(Array::to_string).unwrap_or_default();
            let block = padded.map(|padded| listed(padded.dimensions())).unwrap_or_default();
            let data = padded.map_or(0, PaddedBlock::data_bytes).saturating_mul(buffers);
            let label = format!("{name}: [{block}] of {array}{times}");
            BudgetPart { label, bytes, padding_bytes: bytes.saturating_sub(data), buffers }
        });
        let body = self.budget.guess_bytes.filter(|guess| *guess > 0);
        let body =
            body.map(|bytes| BudgetPart { label: "the body, a guess".to_owned(), bytes, padding_bytes: 0, buffers: 1 });
        BudgetPicture {
            title: format!("{}: VMEM on TPU {}", self.name.as_deref().unwrap_or("kernel"), self.tpu()),
            summary: format!("{}.", self.verdict_in_words()),
            parts: parts.chain(body).collect(),
            limit: self.budget.limit_bytes,
            ..BudgetPicture::default()
        }
    }

    /// Its line in a table of generations.
    #[must_use]
    pub fn row(&self) -> String {
        let size = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), bytes);
        let numbers = format!(
            "{:>12}{:>12}{:>12}{:>12}",
            bytes(self.budget.vmem_bytes),
            size(self.budget.limit_bytes),
            size(self.budget.limits.map(|limits| limits.cap_bytes)),
            bytes(self.budget.smem_bytes)
        );
        let verdict = self.budget.verdict.map_or("unknown", KernelFit::as_str).replace('_', " ");
        format!("  {:<4}{numbers}  {}", self.tpu(), styled(style_of(self.tone()), verdict))
    }

    /// The headings of a table of generations.
    #[must_use]
    pub fn heading() -> String {
        styled(FAINT, format!("  {:<4}{:>12}{:>12}{:>12}{:>12}  verdict", "", "VMEM", "limit", "at most", "SMEM"))
    }

    fn tpu(&self) -> &'static str {
        self.budget.generation.name()
    }

    fn tone(&self) -> Tone {
        match self.budget.verdict {
            _ if self.is_measured_too_large() => Tone::Bad,
            _ if self.measured_bytes.is_some() => Tone::Plain,
            Some(KernelFit::DoesNotFit) => Tone::Bad,
            Some(KernelFit::ProbablyDoesNotFit) => Tone::Warning,
            _ => Tone::Plain,
        }
    }

    fn is_measured_too_large(&self) -> bool {
        self.measured_bytes.zip(self.budget.limit_bytes).is_some_and(|(taken, limit)| taken > limit)
    }

    /// The verdict in a sentence; it never says "fits" without a word on the body.
    fn verdict_in_words(&self) -> String {
        let declared = bytes(self.budget.vmem_bytes);
        let (Some(verdict), Some(limit)) = (self.budget.verdict, self.budget.limit_bytes) else {
            return format!("It declares {declared} of VMEM; what a kernel may have on {} is not known", self.tpu());
        };
        if let Some(taken) = self.measured_bytes {
            let fits = if taken > limit { "Does not fit" } else { "Fits" };
            return format!(
                "{fits}: the compiler takes {} of VMEM, {declared} of it declared, and its limit is {}",
                bytes(taken),
                bytes(limit)
            );
        }
        let left = limit.saturating_sub(self.budget.vmem_bytes);
        let of_limit = format!("{declared} of VMEM, and its limit is {}", bytes(limit));
        let guess = match self.budget.guess_bytes.unwrap_or_default() {
            0 => "fit into registers".to_owned(),
            guess => format!("take {}", bytes(guess)),
        };
        match verdict {
            KernelFit::DoesNotFit if self.budget.vmem_bytes > limit => format!("Does not fit: it declares {of_limit}"),
            KernelFit::DoesNotFit => {
                let most = self.budget.limits.map(|limits| limits.smem_bytes).unwrap_or_default();
                format!(
                    "Does not fit: it declares {} of SMEM, which has {}",
                    bytes(self.budget.smem_bytes),
                    bytes(most)
                )
            }
            KernelFit::ProbablyFits => {
                format!("Probably fits: it declares {of_limit}; its body is guessed to {guess}")
            }
            KernelFit::ProbablyDoesNotFit => {
                format!("Probably does not fit: it declares {of_limit}; its body is guessed to {guess}")
            }
            _ if left == 0 => format!("What it declares fits, and leaves nothing for the body: it declares {of_limit}"),
            _ => {
                format!("What it declares fits, and leaves {} for the body: it declares {of_limit}", bytes(left))
            }
        }
    }

    /// The remedy, if the kernel does not fit.
    fn remedy(&self) -> Option<String> {
        let (verdict, limit) = (self.budget.verdict?, self.budget.limit_bytes?);
        let is_short = match verdict {
            _ if self.is_measured_too_large() => true,
            _ if self.measured_bytes.is_some() => return None,
            KernelFit::DoesNotFit => self.budget.vmem_bytes > limit,
            KernelFit::ProbablyDoesNotFit => true,
            _ => return None,
        };
        if !is_short {
            return Some("Keep in VMEM, or copy from HBM in parts, what is not needed to choose blocks".to_owned());
        }
        let cap = self.budget.limits?.cap_bytes;
        Some(match self.budget.limit_needed() {
            Some(needed) => {
                let body = match (self.measured_bytes, self.budget.guess_bytes) {
                    (Some(_), _) => "",
                    (None, Some(_)) => " or more, as the body is guessed",
                    (None, None) => ", and as much more as the body takes",
                };
                format!(
                    "Raise the limit: `pltpu.CompilerParams(vmem_limit_bytes={needed})`{body}; {} honours up to {}",
                    self.tpu(),
                    bytes(cap)
                )
            }
            None => {
                let windows = self.budget.windows.iter().filter(|window| window.operand.memory == Memory::Vmem);
                let largest = windows.max_by_key(|window| window.bytes);
                let which = largest.map(|window| format!(", first that of {}, the largest", window.name));
                format!(
                    "Make the blocks smaller{}: {} honours no limit above {}",
                    which.unwrap_or_default(),
                    self.tpu(),
                    bytes(cap)
                )
            }
        })
    }
}

impl WindowRow {
    fn of(window: &Window) -> Self {
        let operand = &window.operand;
        let padded = window.padded.as_ref();
        let padded_bytes = padded.map_or(0, PaddedBlock::window_bytes);
        Self {
            operand: window.name.clone(),
            shape: operand.array.to_string(),
            block: operand.block.clone(),
            memory_space: operand.memory.name(),
            tile: padded.map(|padded| padded.tile().to_vec()),
            padded_block: padded.map(|padded| padded.dimensions().to_vec()),
            padded_bytes,
            padding_bytes: padded_bytes.saturating_sub(padded.map_or(0, PaddedBlock::data_bytes)),
            buffers: window.buffers,
            bytes: window.bytes,
            moved_bytes: window.moved_bytes,
            cause: window.cause.as_str(),
            may_be_kept: window.may_be_kept,
            unsupported: window.unsupported.as_ref().map(ToString::to_string),
            nearest_block: window.unsupported.as_ref().and_then(Unsupported::nearest).map(<[u64]>::to_vec),
        }
    }
}

impl AllocationRow {
    fn of(row: &Allocation) -> Self {
        Self {
            operand: row.name.clone(),
            shape: row.array.as_ref().map(Array::to_string),
            memory_space: row.memory.name(),
            padded_block: row.padded.as_ref().map(|padded| padded.dimensions().to_vec()),
            bytes: row.bytes,
        }
    }
}

impl WriteText for KernelBudget {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let name = self.name.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
        writeln!(out, "{}", styled(FAINT, format!("{name}TPU {}", self.tpu())))?;
        for window in &self.budget.windows {
            if let Some(unsupported) = &window.unsupported {
                wrapped(&format!("{}: {unsupported}.", window.name), style_of(Tone::Bad), terminal, out)?;
            }
        }
        let style = if self.tone() == Tone::Plain { STRONG } else { style_of(self.tone()) };
        wrapped(&format!("{}.", self.verdict_in_words()), style, terminal, out)?;
        if let Some(remedy) = self.remedy() {
            wrapped(&format!("{remedy}."), anstyle::Style::new(), terminal, out)?;
        }
        let head =
            format!("  {:<11}{:<18}{:<18}{:>7}{:>9}{:>13}", "operand", "block", "padded", "waste", "buffers", "bytes");
        writeln!(out, "{}", styled(FAINT, head))?;
        for window in &self.budget.windows {
            let row = WindowRow::of(window);
            let block: Vec<String> =
                row.block.iter().map(|bound| bound.map_or_else(|| "-".to_owned(), |bound| bound.to_string())).collect();
            let line = Line {
                operand: &row.operand,
                block: listed(&block),
                padded: row.padded_block.as_deref(),
                waste: share(row.padding_bytes, row.padded_bytes),
                buffers: row.buffers,
                bytes: row.bytes,
                cause: format!("{}: {}", row.shape, in_words(window)),
            };
            line.write(terminal, out)?;
        }
        for allocation in self.budget.prefetched.iter().chain(&self.budget.scratch) {
            let row = AllocationRow::of(allocation);
            let padded_bytes = row.bytes;
            let data = allocation.padded.as_ref().map_or(0, PaddedBlock::data_bytes);
            let line = Line {
                operand: &row.operand,
                block: allocation.array.as_ref().map(|array| listed(&array.dimensions)).unwrap_or_default(),
                padded: row.padded_block.as_deref(),
                waste: share(padded_bytes.saturating_sub(data), padded_bytes),
                buffers: u64::from(row.padded_block.is_some()),
                bytes: row.bytes,
                cause: match (&row.shape, allocation.memory) {
                    (Some(shape), memory) => format!("{shape} in {}", in_capitals(memory)),
                    (None, _) => "semaphores, which take nothing of VMEM and SMEM".to_owned(),
                },
            };
            line.write(terminal, out)?;
        }
        self.write_totals(terminal, out)
    }
}

impl KernelBudget {
    fn write_totals(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let total = |out: &mut dyn Write, name: &str, words: String| writeln!(out, "  {name:<11}{words}");
        total(out, "VMEM", format!("{} declared", bytes_both(self.budget.vmem_bytes)))?;
        if let Some(guess) = self.budget.guess_bytes {
            let how = if self.measured_bytes.is_some() { "by the compiler's own account" } else { "a guess" };
            total(out, "body", format!("{}, {how}", bytes_both(guess)))?;
        }
        if let Some(limits) = self.budget.limits {
            let limit = self.budget.limit_bytes.unwrap_or_default();
            let default = match limit == limits.default_bytes {
                true => "by default; ".to_owned(),
                false => format!("as asked, {} by default; ", bytes(limits.default_bytes)),
            };
            let words =
                format!("{} {default}`vmem_limit_bytes` raises it to {}", bytes(limit), bytes(limits.cap_bytes));
            total(out, "limit", words)?;
        }
        let of = self.budget.limits.map(|limits| format!(" of {}", bytes(limits.smem_bytes))).unwrap_or_default();
        total(out, "SMEM", format!("{}{of}", bytes_both(self.budget.smem_bytes)))?;
        if let Some(moved) = self.budget.moved_bytes().filter(|&moved| moved > 0) {
            total(out, "moved", format!("{} to and from the windows, over the whole grid", bytes_both(moved)))?;
        }
        if self.budget.limits.is_some() {
            writeln!(out, "{}", styled(FAINT, format!("  The limits are those of libtpu {}.", Limits::LIBTPU)))?;
        }
        let kept = self.budget.windows.iter().filter(|window| window.may_be_kept);
        let kept: Vec<&str> = kept.map(|window| window.name.as_str()).collect();
        let kept_bytes = self.budget.bytes_that_may_be_kept();
        if kept_bytes > 0 {
            let words = format!(
                "If XLA keeps small arrays ({}) in VMEM as a whole, their windows are not allocated: up to {} less.",
                kept.join(", "),
                bytes(kept_bytes)
            );
            wrapped(&words, FAINT, terminal, out)?;
        }
        writeln!(out)
    }
}

/// A line of the table, with its cause below.
struct Line<'a> {
    operand: &'a str,
    block: String,
    padded: Option<&'a [u64]>,
    waste: f64,
    buffers: u64,
    bytes: u64,
    cause: String,
}

impl Line<'_> {
    fn write(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let padded = self.padded.map(listed).unwrap_or_default();
        let waste = if self.padded.is_some() { percent(self.waste) } else { String::new() };
        let numbers = format!("{waste:>7}{:>9}{:>13}", self.buffers, bytes(self.bytes));
        let style = waste_style(1.0 / (1.0 - self.waste));
        let numbers = styled(style, numbers);
        writeln!(out, "  {:<11}{:<18}{:<18}{numbers}", self.operand, cut(&self.block, 17), cut(&padded, 17))?;
        let cause = cut(&self.cause, terminal.width.saturating_sub(13));
        writeln!(out, "  {:<11}{}", "", styled(FAINT, cause))
    }
}

/// Why a window has its buffers, and its padding.
fn in_words(window: &Window) -> String {
    let mut axes: Vec<usize> = window.operand.index.iter().flatten().copied().collect();
    axes.sort_unstable();
    axes.dedup();
    let buffers = match window.cause {
        BufferCause::Moves => {
            format!("moves along {} {}", if axes.len() == 1 { "axis" } else { "axes" }, listed(&axes))
        }
        BufferCause::AsAsked => format!("Buffered({})", window.buffers),
        BufferCause::Constant if window.operand.buffered.is_some() => "stays; `Buffered` has no effect".to_owned(),
        BufferCause::Constant => "stays".to_owned(),
        BufferCause::OneStep => "the grid has one step".to_owned(),
        BufferCause::OneElement => return "one element, handed over in scalar memory".to_owned(),
        BufferCause::Fused => return "computed in the pipeline; what it is computed from has windows".to_owned(),
        _ => return format!("left in {}", in_capitals(window.operand.memory)),
    };
    let memory = match window.operand.memory {
        Memory::Vmem => String::new(),
        memory => format!("; in {}", in_capitals(memory)),
    };
    let Some(padded) = window.padded.as_ref().filter(|padded| padded.data_bytes() < padded.window_bytes()) else {
        return buffers + &memory;
    };
    format!("{buffers}{memory}; tiles of {}", product(padded.tile()))
}

fn in_capitals(memory: Memory) -> &'static str {
    match memory {
        Memory::Vmem => "VMEM",
        Memory::Smem => "SMEM",
        Memory::Hbm => "HBM",
        Memory::Semaphore => "semaphores",
        _ => "its memory",
    }
}

fn wrapped(words: &str, style: anstyle::Style, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    crate::text::write_wrapped(words, style, ["", "  "], terminal.width, out)
}

/// The error of a kernel whose machine is unknown.
pub(crate) fn without_generation() -> Failure {
    Failure::new("unknown_generation", "the kernel does not say which TPU it is for")
        .with_help("write a line such as `tpu v6e`, or give --tpu v6e")
}
