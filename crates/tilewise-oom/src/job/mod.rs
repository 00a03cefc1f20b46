//! The job beside a message: its settings, its code, and the steps that ran before the failure.

mod closure;
mod devices;
mod done;
pub(crate) mod gpu;
mod growth;
mod history;
mod host;
mod input;
mod kept;
mod model;
mod names;
mod no_grad;
mod pool_settings;
mod processes;
mod replicated;
mod run;
mod serving;
mod settings;
mod snippets;
mod switches;
mod told;
mod transforms;
mod trials;
mod turns;
mod units;
mod worked;

pub use devices::Devices;
pub use done::Done;
pub use gpu::{Core, Gpu};
pub use growth::Rise;
pub(crate) use growth::is_told as grows_in_words;
pub use history::Optimizers;
pub use host::Host;
pub use input::{InputKind, InputOption};
pub use kept::Kept;
pub use model::Model;
pub use names::Names;
pub use pool_settings::PoolSettings;
pub use processes::ListedProcess;
pub use run::Run;
pub use serving::Serving;
pub use settings::Setting;
pub use switches::{Switch, SwitchKind};
pub use told::{Told, Way};
pub use transforms::Derivatives;
pub use units::PerUnit;
pub use worked::Worked;

use crate::framework::Framework;
use crate::occasion::Occasion;
use crate::prose;
use crate::server::Server;
use crate::software::SoftwareOption;
use crate::text::{tail, word};

/// Bytes that are searched: a log ends near its error.
const SEARCHED: usize = 256 << 10;

/// Signs of XRT, by which PyTorch/XLA sent programs to a TPU's host.
const REMOTE: [&str; 3] = ["/job:tpu_worker", "XRTCompile", "XRTExecute"];

/// The job of a text, as far as its log, its command and its code show it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Job {
    /// Its batch and lengths, batches first; of a server its own settings.
    pub settings: Vec<Setting>,
    /// Options with a value that makes its program larger, one of a kind.
    pub switches: Vec<Switch>,
    /// The number of batches whose gradients are added up, as an option sets it.
    pub accumulation: Option<Setting>,
    /// Its devices.
    pub devices: Devices,
    /// Sizes of inputs by other names, each with one value.
    pub sizes: Vec<Setting>,
    /// Options that set the blocks of a computation.
    pub blocks: Vec<Setting>,
    /// Whether a smaller batch is ruled out: it is 1, or the text tells that others ended the same.
    pub is_batch_ruled_out: bool,
    /// Whether steps ran before the failure.
    pub has_run: bool,
    /// Whether a figure of memory grows from line to line of the log, or a sentence tells so.
    pub grows: bool,
    /// The largest rise of a figure of memory between two lines of the log.
    pub rise: Option<Rise>,
    /// Whether the text tells that calls are compiled anew, such as for shapes that differ.
    pub recompiles: bool,
    /// Its use of the host's memory.
    pub host: Host,
    /// Arrays that its code keeps on the device.
    pub kept: Option<Kept>,
    /// Whether it takes a gradient through a loop of JAX's, whose steps each keep values for it, without a checkpoint.
    pub differentiates_a_loop: bool,
    /// Whether it trains a model or only runs it.
    pub run: Option<Run>,
    /// The setting that its own error tells to change.
    pub told: Option<Told>,
    /// Changes that were made already.
    pub done: Vec<Done>,
    /// Its model, if the text names the size of one.
    pub model: Option<Model>,
    /// The GPU that the text names, if it names one model.
    pub gpu: Option<Gpu>,
    /// The core of the old TPU that the text names.
    pub core: Option<Core>,
    /// A line that shows an array as replicated.
    pub replicated: Option<String>,
    /// The rank of the process that asks for memory of the first GPU, which is another rank's.
    pub rank_on_first: Option<u64>,
    /// The processes on the device that errors list, each once: others, or, where it is the only one, the job's own.
    pub processes: Vec<ListedProcess>,
    /// Whether the text tells that nothing else runs on its device.
    pub is_alone: bool,
    /// Whether the text tells that `nvidia-smi` lists no process.
    pub lists_no_process: bool,
    /// Software that the text names.
    pub names: Names,
    /// Options of the software that the text names, with which it takes less memory.
    pub software: Vec<SoftwareOption>,
    /// Its server's settings, if it is one.
    pub serving: Serving,
    /// The settings of the memory that the process takes of a GPU.
    pub pool: PoolSettings,
    /// Whether programs are compiled on another machine, which the job's own flags don't reach: TensorFlow's and XRT's.
    pub is_compiled_elsewhere: bool,
    /// Numbers that prose counts something by: `100 atmospheric layers`.
    pub counts: Vec<u64>,
    /// The function that code maps over samples with `jax.vmap`, as it is written.
    pub mapped: Option<String>,
    /// The function by which code makes a matrix of derivatives: `jax.hessian`, `jacfwd` or `jacrev`.
    pub derivatives: Option<Derivatives>,
    /// Whether a sentence asks how much memory a program takes: `How do I measure its peak memory?`
    pub asks_size: bool,
    /// Whether the text lets JAX compute in 64 bits: `jax.config.update("jax_enable_x64", True)`.
    pub enables_x64: bool,
    /// Whether the text has the code of a step that takes a gradient.
    pub shows_step: bool,
    /// Whether the text has code that calls a PyTorch model, takes no gradient, and doesn't switch gradients off.
    pub lacks_no_grad: bool,
    /// Whether the text has code that evaluates a PyTorch model in a loop, and none that switches gradients off.
    pub evaluates_with_grad: bool,
    /// Tokens of an input that is longer than the model's, and the most that this was trained for.
    pub long_input: Option<[u64; 2]>,
    /// Whether the text tells that a compiled function closes over an array.
    pub closes_over: bool,
    /// Whether code compiles a function without parameters.
    pub takes_nothing: bool,
    /// An optimizer with which it ran, where one with more state fails.
    pub optimizers: Option<Optimizers>,
    /// Whether earlier attempts ran in the same process.
    pub is_repeated: bool,
    /// Whether it fails only once it goes on from a checkpoint.
    pub is_resumed: bool,
    /// A version or an option with which it ran, as the text tells.
    pub worked: Option<Worked>,
    /// Its work as it failed, in the words of the text's own sentences.
    pub(crate) occasion: Option<Occasion>,
    /// The folder that it dumps its programs to, if the text shows its `--xla_dump_to`.
    pub dump: Option<String>,
}

impl Job {
    /// The job of a log; `text` is the log without what surrounds its messages.
    pub(crate) fn of(log: &str, text: &str, server: Option<Server>, framework: Option<Framework>) -> Self {
        let mut settings = settings::of(text, server);
        let lower = tail(log, SEARCHED).to_ascii_lowercase();
        if trials::are_lengths_to_stay(&lower) {
            settings.retain(Setting::is_of_batch);
        }
        let is_tried = |name: &str| trials::is_tried(&lower, &name.to_ascii_lowercase());
        settings.retain(|setting| setting.is_of_batch() || !is_tried(&setting.name));
        let worked = Worked::of_commit(tail(log, SEARCHED))
            .or_else(|| Worked::of_revert(&lower))
            .or_else(|| Worked::of(&lower))
            .or_else(|| Worked::of_update(tail(log, SEARCHED)))
            .or_else(|| Worked::of_change(tail(log, SEARCHED)))
            .or_else(|| Worked::of_running(tail(log, SEARCHED)))
            .or_else(|| snippets::item_that_fails(tail(log, SEARCHED)))
            .or_else(|| Worked::of_option(tail(log, SEARCHED)))
            .or_else(|| Worked::of_condition(tail(log, SEARCHED)));
        match &worked {
            // A value that runs need not be lowered.
            Some(Worked::Option { name, value }) => {
                settings.retain(|setting| !(setting.is_option(name) && setting.value.to_string() == *value));
            }
            // Nor one that stays as it is where the job runs.
            Some(Worked::Without(_)) => settings.clear(),
            _ => {}
        }
        let differentiates_a_loop = transforms::differentiates_a_loop(&lower);
        // Values for a gradient grow with a loop's steps, not with those of the job.
        let grows = growth::grows(log) || !differentiates_a_loop && growth::is_told(&lower);
        let has_run = grows || turns::have_run(log);
        // There is no step while weights are made or loaded.
        let is_possible = |work: &Occasion| match work {
            Occasion::Load | Occasion::Weights => !has_run && !lower.contains(".backward("),
            _ => true,
        };
        Self {
            is_batch_ruled_out: settings::has_batch_of_one(&settings) || trials::are_batches_in_vain(&lower),
            settings,
            switches: Switch::all(log),
            accumulation: settings::accumulation(text),
            devices: Devices::of(log),
            sizes: settings::sizes(text).into_iter().filter(|size| !is_tried(&size.name)).collect(),
            blocks: settings::blocks(text),
            has_run,
            grows,
            rise: Rise::of(log),
            recompiles: growth::recompiles(&lower),
            host: Host::of(log),
            kept: Kept::of(log),
            differentiates_a_loop,
            run: Run::of(log),
            told: Told::of(log).filter(|told| !is_tried(told.name.trim_start_matches('-'))),
            done: Done::all(log),
            model: Model::of(log),
            gpu: Gpu::of(log),
            core: Core::of(log),
            replicated: replicated::replicated(log),
            rank_on_first: rank_on_first(log),
            is_alone: processes::is_alone(&lower),
            lists_no_process: processes::lists_none(&lower),
            processes: ListedProcess::of(log),
            names: Names::of(text, &lower, framework),
            software: SoftwareOption::all(log),
            serving: Serving::of(log, text, server),
            pool: PoolSettings::of(text, &lower),
            is_compiled_elsewhere: framework == Some(Framework::TensorFlow)
                || REMOTE.iter().any(|sign| text.contains(sign)),
            counts: counts(&lower),
            derivatives: Derivatives::of(log),
            asks_size: asks_size(&lower),
            enables_x64: transforms::enables_x64(&lower),
            mapped: transforms::mapped(log),
            shows_step: log.contains(".backward("),
            lacks_no_grad: no_grad::is_lacking(log),
            evaluates_with_grad: no_grad::is_lacking_beside_eval(log),
            long_input: long_input(text),
            closes_over: closure::closes_over(log, &lower),
            takes_nothing: closure::takes_nothing(log),
            optimizers: Optimizers::of(&lower),
            is_repeated: history::is_repeated(&lower),
            is_resumed: history::is_resumed(&lower),
            worked,
            occasion: prose::occasion(&lower).filter(is_possible),
            dump: dump_of(text),
        }
    }

    /// The tokens or other elements of all samples, by its batch and length; `None` unless both are known.
    ///
    /// ```
    /// let text = "Ran out of memory in memory space hbm. Used 8.83G of 8.00G hbm. {\"batch_size\": 8, \"max_length\": 4096}";
    /// assert_eq!(tilewise_oom::Message::parse(text)?.job.elements_of_samples(), Some(32_768));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn elements_of_samples(&self) -> Option<u64> {
        settings::elements(&self.settings)
    }
}

/// The lengths in a warning of Hugging Face's tokenizers: `longer than the specified maximum sequence length for this model
/// (115108 > 32768)`.
fn long_input(text: &str) -> Option<[u64; 2]> {
    let (_, behind) = text.rsplit_once("maximum sequence length for this model (")?;
    let (tokens, most) = behind.split_once(')')?.0.split_once('>')?;
    let lengths = [tokens.trim().parse().ok()?, most.trim().parse().ok()?];
    (lengths[0] > lengths[1]).then_some(lengths)
}

/// The numbers of a text, in lower case, that a word of prose follows.
fn counts(lower: &str) -> Vec<u64> {
    /// Numbers that are kept.
    const MOST: usize = 64;
    const UNITS: [&str; 8] = ["bytes", "byte", "hours", "seconds", "minutes", "days", "times", "bits"];
    let words: Vec<(usize, usize)> = word::all(lower).collect();
    let found = words.windows(2).filter_map(|pair| {
        let [(start, end), (next, after)] = [pair[0], pair[1]];
        let (name, is_next) = (&lower[next..after], &lower[end..next] == " ");
        let is_word = name.len() > 3 && name.bytes().all(|byte| byte.is_ascii_lowercase()) && !UNITS.contains(&name);
        let is_alone = !lower[..start].ends_with(['.', '/', ':', '=', '-', '[', ',']);
        lower[start..end].parse().ok().filter(|count: &u64| *count > 1 && is_next && is_word && is_alone)
    });
    let mut all = Vec::new();
    for count in found {
        if !all.contains(&count) && all.len() < MOST {
            all.push(count);
        }
    }
    all
}

/// Whether a sentence asks how much memory a program takes. `lower` is in lower case.
fn asks_size(lower: &str) -> bool {
    const ASKS: [&str; 7] = ["measure", "estimate", "predict", "find out", "know how much", "how much", "profile"];
    const QUESTIONS: [&str; 6] = ["how ", "is there", "want to", "can i", "any way", "?"];
    prose::tells(lower, &[&["memory", "vram", "hbm"], &ASKS, &QUESTIONS], &[])
}

/// The folder of `--xla_dump_to=FOLDER`. It is printed in a command, so a name that a shell would take apart is left out.
fn dump_of(text: &str) -> Option<String> {
    let (_, folder) = text.split_once("--xla_dump_to=")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=~".contains(c);
    let end = folder.find(|c| !is_plain(c)).unwrap_or(folder.len());
    let is_ended = folder[end..].chars().next().is_none_or(|c| c.is_whitespace() || "\"'`,)".contains(c));
    (is_ended && folder.starts_with(|c: char| c.is_ascii_alphanumeric() || "/.~".contains(c)))
        .then(|| folder[..end].to_owned())
}

/// The rank whose own line tells that it asked the first GPU, where several other processes are: each rank should have its
/// own.
fn rank_on_first(log: &str) -> Option<u64> {
    log.lines().filter(|line| line.contains(" GPU 0 has a total ")).find_map(|line| {
        let (rank, message) = line.split_once("[rank")?.1.split_once(']')?;
        let listed = ListedProcess::all(message).count() + usize::from(message.contains("this process has"));
        rank.parse().ok().filter(|rank| *rank > 0 && listed > 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_on_the_first_gpu() {
        let of = |rank: u64, gpu: u64, others: &str| {
            rank_on_first(&format!(
                "[rank{rank}]: Tried to allocate 64.00 MiB. GPU {gpu} has a total capacity of 79.15 GiB.{others}"
            ))
        };
        let others = " Process 70410 has 10.12 GiB memory in use. Process 70411 has 9.87 GiB memory in use.";
        assert_eq!(of(5, 0, others), Some(5));
        let own = " Process 70410 has 10.12 GiB memory in use. Including non-PyTorch memory, this process has 9.87 GiB memory in use.";
        assert_eq!(of(1, 0, own), Some(1));
        assert_eq!((of(0, 0, others), of(5, 5, others), of(5, 0, "")), (None, None, None));
    }

    #[test]
    fn counts_of_prose() {
        assert_eq!(counts("the matrix for 100 atmospheric layers, 16 gib free, [40,11] of 2.5 things"), [100]);
    }

    #[test]
    fn inputs_that_are_too_long() {
        let warned = "longer than the specified maximum sequence length for this model (115108 > 32768). Running";
        assert_eq!(long_input(warned), Some([115_108, 32_768]));
        assert_eq!((long_input("for this model (1 > 2)"), long_input("")), (None, None));
    }
}
