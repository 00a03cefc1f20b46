//! Sentences that people write around a log: the occasion of a failure, and the versions with which a job ran.

use crate::occasion::Occasion;
use crate::text::word;

/// Marks that end a sentence before a space.
const MARKS: [char; 4] = ['.', '?', '!', ';'];

/// Maximum bytes of a sentence: longer ones are code or logs.
const LONGEST: usize = 400;

/// Signs that a sentence tells of a failure.
const FAILURES: [&str; 16] = [
    "oom",
    "memory",
    "fail",
    " dies",
    " died",
    "crash",
    "error",
    "runs out",
    "ran out",
    "stops",
    "killed",
    "kills",
    "sigkill",
    "exception",
    "breaks",
    "happens",
];

/// Words before the work of a job in a sentence on its failure.
const CONJUNCTIONS: [&str; 9] = ["when", "while", "during", "at", "on", "upon", "into", "each", "every"];

/// Those that speak of layers and batches, too, unless a state is named.
const REPEATED: [&str; 2] = ["each", "every"];

/// Words between a conjunction and the work.
const NEAR: usize = 12;

const SAVES: [&str; 6] = ["save", "saves", "saving", "saved", "serialization", "serializing"];

/// Savings for which no file is written.
const SPARED: [&str; 5] = ["memory", "vram", "ram", "space", "time"];

const EVALUATIONS: [&str; 5] = ["evaluation", "evaluating", "evaluates", "validation", "validating"];

const LOADS: [&str; 10] = [
    "load",
    "loads",
    "loading",
    "loaded",
    "restore",
    "restores",
    "restoring",
    "resuming",
    "prepared",
    "from_pretrained",
];

const INITIALIZATIONS: [&str; 4] = ["initialize", "initializing", "initialized", "initialization"];

/// Words for weights and a state, beside a verb that loads or makes them.
const WEIGHTS: [&str; 14] = [
    "from_pretrained",
    "model",
    "models",
    "weights",
    "checkpoint",
    "checkpoints",
    "pipeline",
    "transformer",
    "parameters",
    "params",
    "state",
    "unet",
    "vae",
    "shards",
];

/// The sentences of a text, line by line.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(in_line).filter(|sentence| !sentence.is_empty() && sentence.len() <= LONGEST)
}

/// The sentences of a line: a mark in a number or a name ends none.
fn in_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        let marks = rest.match_indices(MARKS).map(|(at, _)| at + 1);
        let end = marks.into_iter().find(|at| rest[*at..].starts_with(' ')).unwrap_or(rest.len());
        let (sentence, behind) = rest.split_at(end);
        rest = behind.trim_start();
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn words(sentence: &str) -> Vec<&str> {
    word::all(sentence).map(|(start, end)| &sentence[start..end]).collect()
}

/// The occasion that a sentence on the failure names: `It dies while the model is being loaded.`, `when it saves a checkpoint:`.
pub(crate) fn occasion(lower: &str) -> Option<Occasion> {
    sentences(lower).find_map(|sentence| {
        let is_of_failure = FAILURES.iter().any(|sign| sentence.contains(sign)) || sentence.trim_end().ends_with(':');
        if !is_of_failure || sentence.contains("rror: ") {
            return None;
        }
        let words = words(sentence);
        let places = words.iter().enumerate().filter(|(_, word)| CONJUNCTIONS.contains(word)).map(|(at, _)| at + 1);
        // `Loading the model in each rank kills the job.`
        let is_subject = words.first().is_some_and(|word| word.ends_with("ing"))
            && !["but", "works", "fine", "then"].iter().any(|word| words.contains(word));
        let found = is_subject.then_some(0).into_iter().chain(places).find_map(|at| {
            let near = &words[at..words.len().min(at + NEAR)];
            let has = |known: &[&str]| near.iter().any(|word| known.contains(word));
            let ends = near.last().is_some_and(|word| SAVES.contains(word));
            let is_loop = near.windows(2).any(|pair| pair[0] == "eval" && ["loop", "step", "steps"].contains(&pair[1]));
            match () {
                () if at > 0 && REPEATED.contains(&words[at - 1]) && !has(&WEIGHTS) => None,
                () if near.windows(2).any(|pair| SAVES.contains(&pair[0]) && !SPARED.contains(&pair[1])) || ends => {
                    Some(Occasion::Save)
                }
                () if has(&EVALUATIONS) || is_loop => Some(Occasion::Evaluation),
                () if has(&LOADS) && has(&WEIGHTS) => Some(Occasion::Load),
                () if has(&INITIALIZATIONS) && has(&WEIGHTS) => Some(Occasion::Weights),
                () => None,
            }
        });
        found.map(Some).or_else(|| is_of_step(&words).then_some(None))
    })?
}

/// Whether a sentence on a failure puts it into a step: `the crash is in the first training step, in backward`.
fn is_of_step(words: &[&str]) -> bool {
    const STEPS: [&str; 6] = ["step", "steps", "backward", "iteration", "iterations", "epoch"];
    const BEFORE: [&str; 3] = ["first", "second", "training"];
    let is_one = |at: usize| words[..at].iter().rev().take(2).any(|word| BEFORE.contains(word));
    (0..words.len()).any(|at| STEPS.contains(&words[at]) && is_one(at))
}

/// A version of a package with which a job ran, where another one fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Worked {
    /// The package's name, as `pip` has it; empty where a commit is taken back.
    pub package: String,
    /// The version that works, or the commit that is taken back.
    pub version: String,
    /// The address of its repository, where the version is a commit.
    pub repository: Option<String>,
}

/// Packages whose versions a text compares, and their names in `pip`.
const PACKAGES: [(&str, &str); 27] = [
    ("jax", "jax"),
    ("jaxlib", "jaxlib"),
    ("libtpu", "libtpu"),
    ("torch", "torch"),
    ("pytorch", "torch"),
    ("torch_xla", "torch_xla"),
    ("tensorflow", "tensorflow"),
    ("tf", "tensorflow"),
    ("transformers", "transformers"),
    ("diffusers", "diffusers"),
    ("accelerate", "accelerate"),
    ("peft", "peft"),
    ("trl", "trl"),
    ("bitsandbytes", "bitsandbytes"),
    ("deepspeed", "deepspeed"),
    ("xformers", "xformers"),
    ("triton", "triton"),
    ("flax", "flax"),
    ("optax", "optax"),
    ("orbax", "orbax-checkpoint"),
    ("orbax-checkpoint", "orbax-checkpoint"),
    ("keras", "keras"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("torchtune", "torchtune"),
    ("lightning", "lightning"),
    ("numpyro", "numpyro"),
];

/// Outcomes of a version that works.
const GOOD: [&str; 14] = [
    "works",
    "worked",
    "work fine",
    "is fine",
    "was fine",
    "no leak",
    "no oom",
    "no problem",
    "no issue",
    "fits",
    "runs",
    "ran fine",
    "is ok",
    "was ok",
];

/// Words for a return to another version.
const RETURNS: [&str; 5] = ["downgrad", "revert", "rolling back", "rolled back", "going back"];

/// Outcomes of such a return.
const HELPS: [&str; 5] = ["help", "work", "fix", "solve", "resolve"];

/// Outcomes of a version that doesn't work, and words for a change to it.
const BAD: [&str; 12] = [
    "leak",
    "fail",
    "oom",
    "out of memory",
    "crash",
    "broke",
    "breaks",
    "not work",
    "n't work",
    "error",
    "upgrad",
    "updat",
];

/// Borders of clauses.
const CLAUSES: [&str; 7] = [", ", " but ", " while ", " whereas ", " (", " and ", " – "];

impl Worked {
    /// The commit that a comment in its own line calls good: `pip install git+https://github.com/o/r@d06931e  # This works.`
    pub(crate) fn of_commit(text: &str) -> Option<Self> {
        /// Bytes of the longest address, and digits of the shortest commit.
        const LONGEST: usize = 200;
        const SHORTEST: usize = 7;
        text.lines().find_map(|line| {
            let (_, behind) = line.split_once("git+https://")?;
            let is_part = |c: char| c.is_ascii_alphanumeric() || "./_-@".contains(c);
            let end = behind.find(|c| !is_part(c)).unwrap_or(behind.len());
            let (address, version) = behind[..end].split_once('@').filter(|_| end <= LONGEST)?;
            let comment = behind[end..].split_once('#')?.1.to_ascii_lowercase();
            let has = |known: &[&str]| known.iter().any(|sign| comment.contains(sign));
            let is_commit = version.len() >= SHORTEST && version.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_good = has(&GOOD) && !has(&BAD) && !comment.contains("n't");
            let package = address.rsplit('/').next()?.trim_end_matches(".git");
            (is_commit && is_good && !package.is_empty()).then(|| Self {
                package: package.to_owned(),
                version: version.to_owned(),
                repository: Some(format!("https://{address}")),
            })
        })
    }

    /// The commit that a sentence takes back, after which a job ran: ``Reverting `ea119f9` resolves the issue``.
    pub(crate) fn of_revert(lower: &str) -> Option<Self> {
        let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let has_digit = |word: &str| word.contains(|c: char| c.is_ascii_digit());
        let is_commit = |word: &&str| (7..=40).contains(&word.len()) && is_hex(word) && has_digit(word);
        sentences(lower).find_map(|sentence| {
            let has = |known: &[&str]| known.iter().any(|sign| sentence.contains(sign));
            let is_back =
                sentence.contains("revert") && has(&HELPS) && !has(&["n't", "not ", "ert to", "erting to", "erted to"]);
            let version = words(sentence).into_iter().find(is_commit).filter(|_| is_back)?;
            Some(Self { package: String::new(), version: version.to_owned(), repository: None })
        })
    }

    /// The version that works, where a sentence compares it with one that doesn't: `jax 0.4.23 works, 0.4.26 fails`.
    pub(crate) fn of(lower: &str) -> Option<Self> {
        sentences(lower).find_map(|sentence| {
            let versions: Vec<(usize, &str)> = versions(sentence).collect();
            let package = versions.iter().find_map(|(at, _)| package_before(&sentence[..*at]))?;
            let clause = |at: usize| {
                let start = CLAUSES.iter().filter_map(|mark| Some(sentence[..at].rfind(mark)? + mark.len())).max();
                let end = CLAUSES.iter().filter_map(|mark| Some(at + sentence[at..].find(mark)?)).min();
                &sentence[start.unwrap_or(0)..end.unwrap_or(sentence.len())]
            };
            let has = |text: &str, known: &[&str]| known.iter().any(|sign| text.contains(sign));
            let is_good = |at: usize| {
                let clause = clause(at);
                let rest = GOOD.iter().fold(clause.to_owned(), |rest, good| rest.replace(good, ""));
                has(clause, &GOOD) && !has(&rest, &BAD) && !rest.contains("n't")
                    || has(clause, &RETURNS) && has(sentence, &HELPS)
            };
            let (at, version) = versions.iter().find(|(at, _)| is_good(*at))?;
            let is_of_package = package_before(&sentence[..*at]).is_none_or(|own| own == package);
            let is_compared = has(clause(*at), &RETURNS)
                || versions.iter().any(|(other, _)| other != at && has(clause(*other), &BAD));
            (is_compared && is_of_package).then(|| Self {
                package: package.to_owned(),
                version: (*version).to_owned(),
                repository: None,
            })
        })
    }
}

/// The versions in a sentence, each with its place: `0.4.23`, `2.1.0.post1`.
fn versions(sentence: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let starts = sentence.char_indices().filter(move |(at, c)| {
        c.is_ascii_digit() && !sentence[..*at].ends_with(|before: char| is_part(before) || before == '_')
    });
    starts.filter_map(move |(at, _)| {
        let end = sentence[at..].find(|c| !is_part(c)).map_or(sentence.len(), |length| at + length);
        let version = sentence[at..end].trim_end_matches('.');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_version = version.split('.').take(2).filter(|part| is_number(part)).count() == 2;
        is_version.then_some((at, version))
    })
}

/// The package whose name stands right before a version: `jax 0.4.23`, `jax==0.4.23`, `jax version 0.4.23`.
fn package_before(before: &str) -> Option<&'static str> {
    let before = before.trim_end_matches([' ', '=', '`', '\'', '"', 'v', '<', '>', '~']);
    let before = before.strip_suffix("version").unwrap_or(before).trim_end_matches([' ', '=']);
    let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).map_or(0, |at| at + 1);
    PACKAGES.iter().find(|(name, _)| before.get(start..) == Some(name)).map(|(_, package)| *package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occasions_in_sentences() {
        for (text, expected) in [
            ("it fails while the model is being prepared.", Some(Occasion::Load)),
            ("training itself works; when the epoch is over and it saves a checkpoint:", Some(Occasion::Save)),
            ("i get oom when loading the 70b checkpoint on two gpus", Some(Occasion::Load)),
            ("runs out of memory during validation", Some(Occasion::Evaluation)),
            ("crashes on initialization of the model", Some(Occasion::Weights)),
            ("training works when the model is loaded in 8 bits", None),
            ("each checkpoint saving increases cpu memory usage", Some(Occasion::Save)),
            ("each layer saves its input, so memory is full", None),
            ("loading the model in each rank kills the job", Some(Occasion::Load)),
            ("loading the model works, then it runs out of memory", None),
            ("root cause: oom during checkpoint serialization", Some(Occasion::Save)),
            ("the head is oomkilled 12 seconds into the restore of the checkpoint", Some(Occasion::Load)),
            ("i am running into a hbm oom during the eval loop of xlnet", Some(Occasion::Evaluation)),
            ("it dies at step 20 of training", None),
            ("i load the model, then train, and it fails", None),
            ("it fails at once, though it saves memory as it should", None),
            ("runtimeerror: error(s) when loading state", None),
            ("it runs out of memory during evaluation after the first epoch", Some(Occasion::Evaluation)),
            ("it dies when it saves a checkpoint at the end of the first epoch", Some(Occasion::Save)),
            ("it fails while loading the weights, before the first training step", Some(Occasion::Load)),
            (
                "the crash is in the first training step. with 4 bits it runs out of memory while it loads the model",
                None,
            ),
        ] {
            assert_eq!(occasion(text), expected, "{text}");
        }
    }

    #[test]
    fn commits_that_work() {
        let of = |text: &str| Worked::of_commit(text).map(|worked| (worked.package, worked.version));
        let line = "!pip install git+https://github.com/o/Repo.git@d06931e79cc3 # This version works well.";
        assert_eq!(of(line), Some(("Repo".to_owned(), "d06931e79cc3".to_owned())));
        for none in [
            "pip install git+https://github.com/o/r@d06931e  # fails",
            "pip install git+https://github.com/o/r@main  # works",
            "pip install git+https://github.com/o/r@d06931e",
            "git+https://@  # works",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn versions_that_work() {
        let of = |text: &str| Worked::of(text).map(|worked| format!("{} {}", worked.package, worked.version));
        let expected = |text: &str| Some(text.to_owned());
        let orbax = "orbax-checkpoint 0.11.8 is fine, 0.11.19 leaks (versions between not tried).";
        assert_eq!(of(orbax), expected("orbax-checkpoint 0.11.8"));
        assert_eq!(of("it works with jax 0.4.23 but with jax 0.4.26 i get oom"), expected("jax 0.4.23"));
        assert_eq!(of("after upgrading to pytorch 2.1, it fails, pytorch==2.0.1 works"), expected("torch 2.0.1"));
        assert_eq!(of("downgrading to vllm 0.6.1 helps"), expected("vllm 0.6.1"));
        for none in [
            "jax 0.4.23 works on my cpu",
            "tried jax 0.3.24 and 0.3.25, both fail",
            "python 3.10 works, python 3.11 fails",
            "used 9.35g of 7.48g hbm",
            "jax 0.4.23 doesn't work, 0.4.26 fails",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
