//! `tilewise explain`: explains a pasted out-of-memory message and advises.

use crate::{
    input::InputArgs,
    output::{FormatArgs, Output},
    values::parse_generation,
};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};
use tilewise::{tpu::Generation, visible};
use tilewise_audit::{Explanation, Failure, read_log, read_stream};
use tilewise_report::{
    Item, Page, Prose,
    style::{FAINT, styled},
};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise explain train.log
  python train.py 2>&1 | tilewise explain
  tilewise explain E1001")]
pub(crate) struct Args {
    /// Files with one message each, among other text or alone; - reads standard input; a code such as E1001 prints its
    /// meaning
    #[arg(default_value = "-", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// TPU generation, if the tiles in the message do not show it: v2 v3 v4 v5e v5p v6e v7x
    #[arg(long, value_name = "TPU", value_parser = parse_generation)]
    tpu: Option<Generation>,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    for file in &args.files {
        let input = file.to_string_lossy();
        if let Some(page) = Page::named(&input).filter(|_| !file.exists()) {
            output.item(&input, Ok(page))?;
            continue;
        }
        let mut kept = Vec::new();
        let explanation = explanation(file, args, &mut kept);
        if let Err(failure) = &explanation
            && failure.kind == "not_an_oom_message"
        {
            no_message(file, &kept, failure.clone(), output)?;
            continue;
        }
        if explanation.is_ok() && args.files.len() > 1 {
            output.text(&format!("{}\n", styled(FAINT, visible(&input))))?;
        }
        output.item(&input, explanation)?;
    }
    Ok(())
}

/// Explains the message in a file. `kept` receives the start of standard input, which can't be read again.
fn explanation(file: &Path, args: &Args, kept: &mut Vec<u8>) -> Result<Item<Explanation>, Failure> {
    let limit = args.input.max_input;
    let message = match file == Path::new("-") {
        true => read_stream(Keeping { input: io::stdin().lock(), kept }, limit),
        false => read_log(file, limit),
    };
    Ok(Item(tilewise_audit::explain(message?, args.tpu)))
}

/// Answers a text without a message: explains the notation in prose, or names the verb that reads the text.
fn no_message(file: &Path, kept: &[u8], failure: Failure, output: &mut Output) -> io::Result<()> {
    let mut bytes = kept.to_vec();
    if file != Path::new("-") {
        File::open(file)?.take(KEPT).read_to_end(&mut bytes)?;
    }
    let text = String::from_utf8_lossy(&bytes);
    let input = file.to_string_lossy();
    if text.contains("HloModule ") {
        let help = format!("this is a program: `tilewise audit {input}` says what it holds in memory");
        return output.failure(&input, failure.with_help(help));
    }
    // A job that ran out of memory needs its message, not an answer about prose.
    let is_of_memory = ["out of memory", "RESOURCE_EXHAUSTED"].iter().any(|words| text.contains(words));
    let is_noise = text.matches(char::REPLACEMENT_CHARACTER).count() > text.len() / 20;
    let prose = if is_of_memory || is_noise { Prose::default() } else { Prose::read(&text) };
    if prose.is_empty() {
        return output.failure(&input, failure);
    }
    output.note("note: there is no out-of-memory message here; the notation of XLA's documents in it is answered")?;
    output.item(&input, Ok(prose))
}

/// The most bytes that are read of prose, and kept of a stream for it.
const KEPT: u64 = 4 << 20;

/// A reader that keeps the start of what is read.
struct Keeping<'a, R> {
    input: R,
    kept: &'a mut Vec<u8>,
}

impl<R: Read> Read for Keeping<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let room = usize::try_from(KEPT).unwrap_or(usize::MAX).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&buffer[..count.min(room)]);
        Ok(count)
    }
}
