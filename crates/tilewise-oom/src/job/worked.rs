//! The versions, commits and options with which a text tells that a job works.

use super::pool_settings::assigned;
use crate::prose::{sentences, words};
use crate::text::word;

/// A version, a commit or an option with which a job works, where another one fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Worked {
    /// A version of a package.
    Version {
        /// The package's name, as `pip` has it.
        package: String,
        /// The version that works.
        version: String,
        /// The address of its repository, where the version is a commit.
        repository: Option<String>,
    },
    /// A release of a program, by its name and version.
    Release(String),
    /// The state before a commit, which a sentence takes back.
    Before(String),
    /// Code or an option with which alone it fails, as the text has it.
    Without(String),
    /// An option, with the value with which it works.
    Option {
        /// The option's name, as the text has it.
        name: String,
        /// Its value.
        value: String,
    },
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
pub(super) const GOOD: [&str; 14] = [
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
pub(super) const BAD: [&str; 12] = [
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
            (is_commit && is_good && !package.is_empty()).then(|| Self::Version {
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
            Some(Self::Before(version.to_owned()))
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
            (is_compared && is_of_package).then(|| Self::Version {
                package: package.to_owned(),
                version: (*version).to_owned(),
                repository: None,
            })
        })
    }

    /// The code that a sentence tells to be there whenever it fails: ``It only happens if `jax.debug.breakpoint` is set.``
    pub(crate) fn of_condition(text: &str) -> Option<Self> {
        const FAILS: [&str; 5] = ["happens", "fails", "occurs", "runs out", "crashes"];
        const THERE: [&str; 6] = ["is set", "is used", "is enabled", "is on", "is there", "is called"];
        sentences(text).find_map(|sentence| {
            let (_, condition) = sentence.split_once("only ")?;
            let has = |known: &[&str]| known.iter().any(|sign| condition.contains(sign));
            let is_told = has(&FAILS) && has(&THERE) && has(&[" if ", " when "]) && !has(&["n't", "not "]);
            let name = condition.split('`').nth(1).filter(|_| is_told)?;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._=-".contains(c);
            (!name.is_empty() && name.chars().all(is_plain)).then(|| Self::Without(name.to_owned()))
        })
    }

    /// The release from which a sentence tells of an update, since when it fails: `After upgrading from Tool v3.0.0 to v3.0.3 it fails.`
    pub(crate) fn of_update(text: &str) -> Option<Self> {
        let is_version =
            |word: &&str| word.matches('.').count() > 0 && versions(word.trim_start_matches('v')).count() == 1;
        sentences(text).find_map(|sentence| {
            let lower = sentence.to_ascii_lowercase();
            let has = |known: &[&str]| known.iter().any(|sign| lower.contains(sign));
            let is_told =
                has(&["upgrad", "updat"]) && has(&["fail", "oom", "out of memory", "crash", "leak", "breaks", "broke"]);
            let words: Vec<&str> = sentence.split_whitespace().map(|word| word.trim_end_matches([',', '.'])).collect();
            let at = words
                .iter()
                .position(|word| *word == "from")
                .filter(|_| is_told && !has(&["n't help", "still", "?"]))?;
            let to = at + words[at..].iter().take(4).position(|word| *word == "to")?;
            let before = words[at + 1..to].last().filter(|word| is_version(word))?;
            words.get(to + 1..)?.iter().take(2).find(|word| is_version(word))?;
            let name: String = words[at + 1..to - 1].join(" ");
            Some(Self::Release([name.as_str(), before].join(" ").trim().to_owned()))
        })
    }

    /// The value from which a sentence raises an option, and since then it fails: `We raised --max-num-seqs from 64 to 128, and since
    /// then it dies.`
    pub(crate) fn of_change(text: &str) -> Option<Self> {
        const RAISED: [&str; 5] = ["rais", "increas", "bump", "doubl", "chang"];
        const SINCE: [&str; 4] = ["since then", "after that", "caused", "now it"];
        sentences(text).find_map(|sentence| {
            let lower = sentence.to_ascii_lowercase();
            let has = |known: &[&str]| known.iter().any(|sign| lower.contains(sign));
            let is_told =
                has(&RAISED) && (has(&SINCE) || has(&BAD)) && !has(&["n't help", "not help", "still", "same", "?"]);
            let words: Vec<&str> =
                sentence.split_whitespace().map(|word| word.trim_matches(['`', ',', '.', ')', '('])).collect();
            let mut places = words.windows(5).filter(|near| is_told && near[1] == "from" && near[3] == "to");
            let [name, _, from, _, to] = places.next()? else { return None };
            let (name, from, to) = (*name, from.parse::<f64>().ok()?, to.parse::<f64>().ok()?);
            let is_option = name.starts_with("--") || name.contains(['_', '-']);
            (is_option && from < to && from > 0.0)
                .then(|| Self::Option { name: name.to_owned(), value: from.to_string() })
        })
    }

    /// The option, and its number, with which a sentence tells that a job runs, where another one fails: ``It runs with
    /// `--max-model-len 8192`, but 16k crashes.``
    pub(crate) fn of_running(text: &str) -> Option<Self> {
        const RUNS: [&str; 10] = [
            "running with",
            "runs with",
            "ran with",
            "run with",
            "works with",
            "worked with",
            "works at",
            "worked at",
            "fits with",
            "fits at",
        ];
        sentences(text).find_map(|sentence| {
            let lower = sentence.to_ascii_lowercase();
            let (at, sign) = RUNS.iter().find_map(|sign| Some((lower.find(sign)?, sign)))?;
            let is_contrasted = BAD.iter().any(|bad| lower.contains(bad));
            let is_denied = ["n't", "not ", "never", "?", " if "].iter().any(|denied| lower[..at].contains(denied));
            let told = sentence.get(at + sign.len()..).filter(|_| is_contrasted && !is_denied)?;
            let told = told.trim_start().trim_start_matches(['`', ' ', '-']);
            let end = told.find([' ', '='])?;
            let value = told[end + 1..].trim_start_matches(['=', ' ']);
            let value = value.split([' ', ',', '`', ')', ';']).next()?.trim_end_matches('.');
            let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let is_option =
                told[..end].contains(['_', '-']) && told[..end].chars().all(|c| word::is_part(c) || c == '-');
            (is_option && is_number).then(|| Self::Option { name: told[..end].to_owned(), value: value.to_owned() })
        })
    }

    /// The option of a sentence that tells how it works with that: `With jit_compile=False the memory stays flat.` A number
    /// is a bound that the writer knows.
    pub(crate) fn of_option(text: &str) -> Option<Self> {
        const WITH: [&str; 6] = ["with", "setting", "using", "set", "when", "disabling"];
        const FLAT: [&str; 7] =
            ["flat", "goes away", "go away", "disappears", "is gone", "stays constant", "is stable"];
        const DENIED: [&str; 15] = [
            "n't",
            "not ",
            "no difference",
            "no effect",
            " but ",
            "only",
            "until",
            "small",
            "still",
            "same",
            "would",
            "should",
            "?",
            " if ",
            "except",
        ];
        sentences(text).find_map(|sentence| {
            let lower = sentence.to_ascii_lowercase();
            let has = |known: &[&str]| known.iter().any(|sign| lower.contains(sign));
            let is_told = words(&lower).iter().any(|word| WITH.contains(word)) && !has(&BAD) && !has(&DENIED);
            if !is_told || !has(&GOOD) && !has(&FLAT) {
                return None;
            }
            let mut set = word::all(sentence).filter_map(|(start, end)| {
                let (name, value) = (&sentence[start..end], assigned(&sentence[end..])?);
                let is_plain = value.len() > 1 && value.parse::<f64>().is_err();
                (name.contains('_') && sentence[end..].starts_with('=') && is_plain).then_some((name, value))
            });
            let (name, value) = set.next().filter(|_| set.next().is_none())?;
            Some(Self::Option { name: name.to_owned(), value: value.to_owned() })
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
    fn options_that_work() {
        let of = |text: &str| match Worked::of_option(text) {
            Some(Worked::Option { name, value }) => Some(format!("{name} {value}")),
            _ => None,
        };
        assert_eq!(of("With jit_compile=False the memory stays flat.").as_deref(), Some("jit_compile False"));
        for none in [
            "with jit_compile=False it works for small inputs",
            "It runs with batch_size=4",
            "With num_workers=0 memory stays flat",
            "with jit_compile=False it doesn't work",
            "jit_compile=False works?",
            "with a_b=True it fails",
            "é_=é",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn numbers_that_run() {
        let of = |text: &str| match Worked::of_running(text) {
            Some(Worked::Option { name, value }) => Some(format!("{name} {value}")),
            _ => None,
        };
        let told = "Was able to get it running with ` --max-model-len 8192`, but 16k crashed it";
        assert_eq!(of(told).as_deref(), Some("max-model-len 8192"));
        assert_eq!(of("batch_size=8 fails, it works with batch_size=4").as_deref(), Some("batch_size 4"));
        for none in [
            "it runs with --max-model-len 8192",
            "it never works with batch_size=4, it crashes",
            "works with two chips but fails on one",
            "works with batch_size=é, fails",
            "it works with --max-model-len 16k, 32k fails",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn code_with_which_alone_it_fails() {
        let of = |text: &str| match Worked::of_condition(text) {
            Some(Worked::Without(name)) => Some(name),
            _ => None,
        };
        assert_eq!(of("It only fails when `debug_nans=True` is set.").as_deref(), Some("debug_nans=True"));
        for none in [
            "it fails when `x` is set",
            "it only fails if `x` is not set",
            "only `x` happens",
            "only happens if `` is set",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn releases_before_an_update() {
        let of = |text: &str| match Worked::of_update(text) {
            Some(Worked::Release(name)) => Some(name),
            _ => None,
        };
        let told = "After upgrading from Tool v3.0.0 to v3.0.3 a large input fails with RESOURCE_EXHAUSTED.";
        assert_eq!(of(told).as_deref(), Some("Tool v3.0.0"));
        for none in ["after updating from 3 to 4 it fails", "upgrading from Tool v3.0.0 to v3.0.3", "from to", ""] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn options_that_were_raised() {
        let of = |text: &str| match Worked::of_change(text) {
            Some(Worked::Option { name, value }) => Some(format!("{name} {value}")),
            _ => None,
        };
        let raised = "We raised --max-num-seqs from 64 to 128, and since then it dies.";
        assert_eq!(of(raised).as_deref(), Some("--max-num-seqs 64"));
        assert_eq!(of("Doubling `page-size` from 16 to 32 caused OOM").as_deref(), Some("page-size 16"));
        for none in [
            "I raised --max-num-seqs from 64 to 128 and it still fails",
            "I lowered per_device_batch from 6 to 3, it fails",
            "it increased memory from 3 to 4 GB and crashed",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn commits_that_work() {
        let of = |text: &str| match Worked::of_commit(text) {
            Some(Worked::Version { package, version, .. }) => Some((package, version)),
            _ => None,
        };
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
        let of = |text: &str| match Worked::of(text) {
            Some(Worked::Version { package, version, .. }) => Some(format!("{package} {version}")),
            _ => None,
        };
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
