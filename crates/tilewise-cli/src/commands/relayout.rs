//! `tilewise relayout`: a real buffer, from one layout to another.

use crate::{
    container::{Container, Header, METADATA, SameBytes, Stored},
    output::{FormatArgs, Output, file::Draft, progress},
};
use serde::Serialize;
use std::{
    fs::{self, File},
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
    thread,
    time::Instant,
};
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;
use tilewise_relayout::{ErrorKind, Mapped, Plan, Region, RunOptions};
use tilewise_report::{
    parse_shape,
    style::{FAINT, STRONG, bytes_both, cut, styled},
};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise relayout rows.bin tiles.bin --from 'f32[300,500]' --to 'f32[300,500]{1,0:T(8,128)}'
  tilewise relayout rows.npy tiles.bin --to 'f32[300,500]{1,0:T(8,128)}' --check
  tilewise relayout model.safetensors w.npy --name w --to 'f32[300,500]{0,1}'

Files named .npy and .safetensors have headers; all others are raw bytes.
OUT is replaced only after everything is written.")]
pub(crate) struct Args {
    /// The file to read: raw bytes, .npy or .safetensors
    #[arg(value_name = "IN")]
    source: PathBuf,
    /// The file to write: raw bytes, .npy or .safetensors
    #[arg(value_name = "OUT")]
    destination: PathBuf,
    /// Shape and layout of the array in IN [default: from the header of IN]
    #[arg(long, value_name = "SHAPE")]
    from: Option<String>,
    /// The same shape with the layout to write to OUT
    #[arg(long, value_name = "SHAPE")]
    to: String,
    /// Name of the tensor in a .safetensors file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Number of threads, at most one per CPU [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Verify every element before replacing OUT
    #[arg(long)]
    check: bool,
    /// Print the plan: the loops around the kernel
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    let request = Request::new(args);
    let moved = request.answer();
    output.item_as(&request.input, moved, Moved::write)
}

/// The arguments, and both shapes as one text that errors point into.
struct Request<'a> {
    args: &'a Args,
    /// `FROM<TAB>TO`, or TO alone.
    input: String,
    from: Option<Range<usize>>,
    to: Range<usize>,
}

impl<'a> Request<'a> {
    fn new(args: &'a Args) -> Self {
        let input = match &args.from {
            Some(from) => format!("{from}\t{}", args.to),
            None => args.to.clone(),
        };
        let to = input.len() - args.to.len()..input.len();
        Self { args, input, from: args.from.as_ref().map(|from| 0..from.len()), to }
    }

    fn answer(&self) -> Result<Moved, Failure> {
        let Self { args, .. } = self;
        if [&args.source, &args.destination].into_iter().any(|path| path.as_os_str() == "-") {
            let streams = Failure::new("not_a_file", "standard input and output can't be mapped into memory");
            return Err(streams.with_help("name two files"));
        }
        let name = args.name.as_deref();
        let [source, destination] = [&args.source, &args.destination].map(|path| Container::of(path));
        check_name(name, [source, destination])?;
        let to = self.layout_at(&self.to)?;
        let from = self.from.as_ref().map(|at| self.layout_at(at)).transpose()?;
        let (file, stored) = find(&args.source, source, name)?;
        let from = match (from, &stored.header) {
            (Some(from), None) => from,
            (from, Some(header)) => self.as_header_says(from, header)?,
            (None, None) => {
                let message =
                    format!("{} holds raw bytes, so the shape of its array is unknown", args.source.display());
                let help = "give it with --from, such as --from 'bf16[300,500]{1,0}'";
                return Err(Failure::new("missing_shape", message).with_help(help));
            }
        };
        let plan = self.plan(&from, &to)?;
        if stored.bytes != plan.source_bytes() {
            return Err(self.wrong_size(stored.bytes, &plan, &from));
        }
        let header = destination.header_for(&to, name.unwrap_or_default());
        let header = header.map_err(|failure| failure.within(self.to.clone()))?;
        self.convert(&plan, Region { file: &file, offset: stored.at }, &header)
    }

    fn layout_at(&self, at: &Range<usize>) -> Result<Tiled, Failure> {
        let layout = parse_shape(&self.input[at.clone()]).and_then(|shape| Ok(Tiled::new(&shape)?));
        layout.map_err(|failure| failure.within(at.clone()))
    }

    /// The source as its file's header describes it; --from may repeat that, in any spelling.
    fn as_header_says(&self, given: Option<Tiled>, header: &Header) -> Result<Tiled, Failure> {
        let at = self.from.clone().unwrap_or_default();
        let held = header.shape(given.as_ref().map(|given| given.array().element_type()));
        let held = held.map_err(|failure| {
            let failure = failure.in_file(&self.args.source);
            if given.is_some() { failure.at(at.clone()) } else { failure }
        })?;
        let held_layout = Tiled::new(&held)?;
        match given {
            None => Ok(held_layout),
            Some(given) if held_layout.has_bytes_of(&given) => Ok(given),
            Some(_) => {
                let message = format!("{} holds {}", self.args.source.display(), short(&held));
                let help = "leave out --from; to read the bytes in another layout, store them in a file of raw bytes";
                Err(Failure::new("shape_mismatch", message).at(at).with_help(help))
            }
        }
    }

    fn plan(&self, from: &Tiled, to: &Tiled) -> Result<Plan, Failure> {
        let [from_shape, to_shape] = [from, to].map(|tiled| Shape::from(tiled.array().clone()));
        let text = &self.input[self.to.clone()];
        let bracket = text.find('[').unwrap_or(text.len());
        let differs = if from.array().element_type() != to.array().element_type() {
            Some(("element type differs", 0..bracket))
        } else if from.logical_dimensions() != to.logical_dimensions() {
            Some(("dimensions differ", bracket..text[bracket..].find(']').map_or(text.len(), |end| bracket + end + 1)))
        } else {
            None
        };
        if let Some((what, at)) = differs {
            let failure =
                Failure::new("shape_mismatch", format!("the {what} from the source's, {}", short(&from_shape)));
            let failure = failure.at(at).within(self.to.clone());
            let meant = to_shape.layout().cloned().and_then(|layout| from_shape.with_layout(layout).ok());
            return Err(failure.with_help(match meant {
                Some(meant) => format!("relayout does not convert elements or change dimensions: use --to '{meant}'"),
                None => "relayout does not convert elements or change dimensions".to_owned(),
            }));
        }
        Plan::of_tiled(from.clone(), to.clone()).map_err(|error| {
            let is_narrow = |tiled: &Tiled| tiled.stored_bits() < u64::from(tiled.array().element_type().bits());
            let at = self.from.as_ref().filter(|_| is_narrow(from)).unwrap_or(&self.to);
            Failure::new(error.kind().as_str(), error.to_string()).at(at.clone())
        })
    }

    /// The error with both sizes, and a guess at the shape of the bytes.
    fn wrong_size(&self, held: u64, plan: &Plan, from: &Tiled) -> Failure {
        let file = self.args.source.display();
        let message = format!("{file} has {held} bytes, {} takes {}", short(plan.from()), plan.source_bytes());
        let plain = Shape::array(from.array().element_type(), from.logical_dimensions().iter().copied()).ok();
        let help = match plain {
            Some(plain) if Tiled::new(&plain).is_ok_and(|plain| plain.physical_bytes() == held) => {
                format!("{held} bytes is the size without tiles and padding: use --from '{plain}'")
            }
            _ if plan.destination_bytes() == held => "that is the size of --to: swap --from and --to".to_owned(),
            _ => "--from must give the shape and layout of the bytes in the file".to_owned(),
        };
        let failure = Failure::new(ErrorKind::BufferLengthMismatch.as_str(), message).with_help(help);
        match &self.from {
            Some(at) => failure.at(at.clone()),
            None => failure,
        }
    }

    fn convert(&self, plan: &Plan, source: Region<'_>, header: &[u8]) -> Result<Moved, Failure> {
        let Self { args, .. } = self;
        let failed = |error| Failure::new("io", format!("can't write {}: {error}", args.destination.display()));
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let threads = args.threads.map_or(cpus, |threads| cpus.min(threads.into()));
        let bytes_each_way = [plan.source_bytes(), plan.destination_bytes()];
        let bytes = bytes_each_way[0].saturating_add(bytes_each_way[1]);

        let mut draft = Draft::of(&args.destination).map_err(failed)?;
        draft.file_mut().write_all(header).map_err(failed)?;
        let mut mapped =
            Mapped::new(plan, source, Region { file: draft.file(), offset: header.len() as u64 }).map_err(failed)?;
        let start = Instant::now();
        let run = progress::during("converting", plan.destination_bytes(), |done| {
            let progress = |bytes| {
                done.fetch_add(bytes, Relaxed);
            };
            mapped.run(&RunOptions { threads, progress: Some(&progress) })
        });
        run.map_err(failed)?;
        let seconds = start.elapsed().as_secs_f64();
        let checked_elements = args.check.then(|| check(plan, &mapped, threads)).transpose()?;
        let start = Instant::now();
        progress::during("flushing to disk", bytes_each_way[1], |_| mapped.flush()).map_err(failed)?;
        let flush_seconds = start.elapsed().as_secs_f64();
        drop(mapped);
        draft.finish().map_err(failed)?;
        Ok(Moved {
            source: args.source.display().to_string(),
            destination: args.destination.display().to_string(),
            from: plan.from().to_string(),
            to: plan.to().to_string(),
            bytes,
            seconds,
            gigabytes_per_second: gigabytes(bytes) / seconds.max(f64::MIN_POSITIVE),
            flush_seconds,
            threads,
            checked_elements,
            plan: args.verbose.then(|| plan.to_string()),
            bytes_each_way,
            checked_bits: dropped_to(plan),
        })
    }
}

fn check_name(name: Option<&str>, containers: [Container; 2]) -> Result<(), Failure> {
    match name {
        Some(_) if !containers.contains(&Container::Safetensors) => {
            Err(Failure::new("unknown_name", "--name selects a tensor in a .safetensors file, and neither file is one"))
        }
        Some(METADATA) => Err(Failure::new("unknown_name", format!("`{METADATA}` can't be the name of a tensor"))),
        // Without a name, the error of a source of that kind lists its tensors.
        None if containers[0] != Container::Safetensors && containers[1] == Container::Safetensors => {
            Err(Failure::new("missing_name", "the tensor in OUT needs a name").with_help("give one with --name"))
        }
        _ => Ok(()),
    }
}

/// Opens a file and finds the array in it.
fn find(path: &Path, container: Container, name: Option<&str>) -> Result<(File, Stored), Failure> {
    let failed = |error| Failure::new("io", format!("can't read {}: {error}", path.display()));
    let not_a_file = || {
        let message = format!("{} is not a regular file, so it can't be mapped into memory", path.display());
        Failure::new("not_a_file", message).with_help("write the bytes to a file first")
    };
    // Opening a pipe waits for its other end.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(not_a_file());
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(not_a_file());
    }
    let stored = container.find(io::BufReader::new(&file), metadata.len(), name);
    Ok((file, stored.map_err(|failure| failure.in_file(path))?))
}

/// Compares every element with the source; returns their number.
fn check(plan: &Plan, mapped: &Mapped<'_>, threads: usize) -> Result<u64, Failure> {
    let elements = plan.from().dimensions().iter().filter_map(|dimension| dimension.bound()).product();
    let difference = progress::during("checking", plan.source_bytes(), |done| {
        mapped.find_difference(threads, |count| {
            let share = u128::from(count) * u128::from(plan.source_bytes()) / u128::from(elements);
            done.fetch_add(u64::try_from(share).unwrap_or(0), Relaxed);
        })
    });
    match difference.map_err(|error| Failure::new("io", format!("can't check the result: {error}")))? {
        None => Ok(elements),
        Some(index) => {
            let message = format!("element {index:?} differs after conversion; nothing was written");
            let help = "this is a bug in tilewise or a hardware fault: please report it";
            Err(Failure::new("check_failed", message).with_help(help))
        }
    }
}

/// A shape for a message, cut: headers may contain very long ones.
fn short(shape: &Shape) -> String {
    cut(&shape.to_string(), 120)
}

/// The bits of an element that the destination keeps, where it stores fewer than the source.
fn dropped_to(plan: &Plan) -> Option<u64> {
    let (from, to) = (plan.source_layout(), plan.destination_layout());
    (to.stored_bits() < from.stored_bits()).then(|| to.array().element_type().bits().into())
}

/// The result of a relayout.
#[derive(Serialize)]
struct Moved {
    source: String,
    destination: String,
    from: String,
    to: String,
    /// Bytes read and written.
    bytes: u64,
    seconds: f64,
    gigabytes_per_second: f64,
    /// Time to flush the file to disk afterwards.
    flush_seconds: f64,
    threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_elements: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    #[serde(skip)]
    bytes_each_way: [u64; 2],
    /// The low bits of each element that were compared, where packing drops the others.
    #[serde(skip)]
    checked_bits: Option<u64>,
}

impl Moved {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  {} → {}", styled(STRONG, &self.destination), self.from, self.to)?;
        for line in self.plan.iter().flat_map(|plan| plan.lines().skip(1)) {
            writeln!(out, "{}", styled(FAINT, format!("  {line}")))?;
        }
        let [read, written] = self.bytes_each_way.map(bytes_both);
        let (time, flush) = (duration(self.seconds), duration(self.flush_seconds));
        let speed = self.gigabytes_per_second;
        writeln!(out, "  read {read}, wrote {written} in {time}, {speed:.2} GB/s; flushed to disk in {flush}")?;
        match (self.checked_elements, self.checked_bits) {
            (None, _) => Ok(()),
            (Some(elements), None) => writeln!(out, "  checked: {elements} elements"),
            (Some(elements), Some(bits)) => {
                writeln!(out, "  checked: {elements} elements, the low {bits} bits of each")
            }
        }
    }
}

fn duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.2} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

#[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}
