//! Arrays that pasted code keeps on the device: lists that a loop appends to, and checkpoints.

use super::SEARCHED;
use crate::prose;
use crate::text::tail;

/// Lines of a loop before one that appends.
const LOOP: usize = 40;

/// Calls whose results lie on the host.
const ON_HOST: [&str; 10] =
    ["item()", ".cpu()", "device_get", "float(", "int(", "len(", "str(", "np.", "numpy", "tolist"];

/// Arrays that a text's code keeps on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kept {
    /// A list that a loop appends arrays to, for all that shows: `image_feats.append(feat)`.
    List {
        /// The list's name.
        list: String,
        /// The appended value, if it is short and plain.
        value: Option<String>,
    },
    /// A sum of losses with the graphs of their gradients, of which no gradient is taken: `total += output.loss`.
    Sum {
        /// The sum's name.
        sum: String,
        /// The value that is added, if it is short and plain.
        value: Option<String>,
    },
    /// Models of Keras's that a loop makes, each of which stays in a graph of the process's.
    Models,
    /// A checkpoint that is loaded to the device beside the state that it is copied into: `state = torch.load(path,
    /// map_location=device)`.
    Checkpoint(String),
    /// Arrays of the functions that errors left, by a sentence: the last traceback has them.
    Traceback,
    /// A checkpoint that each rank loads to the GPU from which it was saved: `load_from_checkpoint(path)` of Lightning.
    OfEachRank,
}

impl Kept {
    pub(crate) fn of(log: &str) -> Option<Self> {
        let lines: Vec<&str> = tail(log, SEARCHED).lines().collect();
        let has = |sign: &str| lines.iter().any(|line| line.contains(sign));
        let are_ranks = ["[rank", "local_rank", "torchrun", "DDP", "ddp", "devices="].into_iter().any(has);
        let of_each = has(".load_from_checkpoint(") && !has("map_location") && are_ranks;
        let checkpoint = checkpoint(&lines).map(Self::Checkpoint);
        let lower = tail(log, SEARCHED).to_ascii_lowercase();
        if is_kept_by_errors(&lower) {
            return Some(Self::Traceback);
        }
        if makes_models(&lines) {
            return Some(Self::Models);
        }
        let of_loop = || list(&lines).map(|(list, value)| Self::List { list, value }).or_else(|| sum(&lines));
        checkpoint.or(of_each.then_some(Self::OfEachRank)).or_else(of_loop).or_else(|| list_in_prose(&lower))
    }
}

/// Whether a sentence tells that an error leaves memory taken: `if the call raises, the GPU memory is not released`. `lower` is in
/// lower case.
fn is_kept_by_errors(lower: &str) -> bool {
    const ERRORS: [&str; 3] = ["error", "exception", "raise"];
    const KEPT: [&str; 8] = [
        "not released",
        "not freed",
        "n't released",
        "n't freed",
        "n't release",
        "n't free ",
        "never released",
        "never freed",
    ];
    let has = |text: &str, known: &[&str]| known.iter().any(|sign| text.contains(sign));
    prose::sentences(lower).any(|sentence| {
        let before = KEPT.iter().find_map(|kept| Some(sentence.split_once(kept)?.0)).unwrap_or_default();
        before.contains("memory") && has(before, &ERRORS) && has(before, &["after ", "if ", "when", "each ", "every "])
    })
}

/// A list without a name, of which a sentence tells: `We append every batch's output to a list.` `lower` is in lower case.
fn list_in_prose(lower: &str) -> Option<Kept> {
    let lists: [&[&str]; 3] = [&["append"], &["to a list", "in a list"], &["each", "every", "all"]];
    prose::tells(lower, &lists, &[]).then(|| Kept::List { list: String::new(), value: None })
}

/// The name of a checkpoint on the device that nothing drops.
fn checkpoint(lines: &[&str]) -> Option<String> {
    let has = |sign: &str| lines.iter().any(|line| line.contains(sign));
    // It has no name where it is taken apart in the same call.
    if lines.iter().any(|line| line.contains("load_state_dict(torch.load(") && !line.contains("map_location")) {
        return Some("state".to_owned());
    }
    let loaded = lines.iter().find_map(|line| {
        let (name, call) = line.split_once('=')?;
        let (_, arguments) = call.split_once("torch.load(")?;
        // Without a place it is that of the process that saved it.
        let place = arguments.split_once("map_location=").map_or("", |(_, place)| place);
        let is_host = place.trim_start_matches(['"', '\'']).starts_with("cpu")
            || place.contains("'cpu'")
            || place.contains("\"cpu\"");
        Some(name.trim()).filter(|name| is_name(name) && !is_host)
    })?;
    let is_dropped = has(&format!("del {loaded}")) || has(&format!("{loaded} = None"));
    (has("load_state_dict") && !is_dropped).then(|| loaded.to_owned())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The list that a loop appends arrays of the device to, and the array where code can repeat it.
fn list(lines: &[&str]) -> Option<(String, Option<String>)> {
    (0..lines.len()).find_map(|at| {
        let (list, value) = lines[at].trim().strip_suffix(')')?.split_once(".append(")?;
        let is_kept = is_name(list) && is_array(value) && is_in_loop(lines, at);
        is_kept.then(|| (list.to_owned(), plain(value)))
    })
}

/// Whether a loop makes models of Keras's, and nothing clears its session.
fn makes_models(lines: &[&str]) -> bool {
    let has = |sign: &str| lines.iter().any(|line| line.contains(sign));
    let is_of_keras = has("keras") || has("Keras");
    let is_made = |at: usize| {
        let Some((name, made)) = lines[at].split_once('=') else { return false };
        let calls = ["Model(", "Sequential(", "keras.Model(", "keras.Sequential("];
        calls.iter().any(|call| made.trim().starts_with(call)) && has(&format!("{}.compile(", name.trim()))
    };
    is_of_keras && !has("clear_session") && (0..lines.len()).any(|at| is_made(at) && is_in_loop(lines, at))
}

/// The sum that a loop adds losses to, of PyTorch's, whose arrays hold their graphs.
fn sum(lines: &[&str]) -> Option<Kept> {
    if !lines.iter().any(|line| line.contains(".backward(")) {
        return None;
    }
    (0..lines.len()).find_map(|at| {
        let (sum, value) = lines[at].split_once("+=")?;
        let (sum, value) = (sum.trim(), value.trim());
        // The gradient of a sum is taken of it, or of what is made of it.
        let is_differentiated = lines.iter().any(|line| {
            let is_of_sum = line.contains(&format!("{sum}.backward(")) || line.contains(&format!("backward({sum}"));
            is_of_sum || line.split_once('=').is_some_and(|(_, made)| made.contains(sum) && !made.contains("item()"))
        });
        let is_kept = is_name(sum) && value.contains("loss") && is_array(value) && is_in_loop(lines, at);
        (is_kept && !is_differentiated).then(|| Kept::Sum { sum: sum.to_owned(), value: plain(value) })
    })
}

/// A value that code can repeat.
fn plain(value: &str) -> Option<String> {
    /// Bytes of a value.
    const LONGEST: usize = 60;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.()[]'".contains(c);
    (value.len() <= LONGEST && value.chars().all(is_plain)).then(|| value.to_owned())
}

/// Whether a value is an array, for all that shows.
fn is_array(value: &str) -> bool {
    value.starts_with(char::is_alphabetic) && !ON_HOST.iter().any(|call| value.contains(call))
}

/// Whether a line of code is in a loop.
fn is_in_loop(lines: &[&str], at: usize) -> bool {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let before = lines[at.saturating_sub(LOOP)..at].iter().rev();
    let mut outer = before.filter(|line| !line.trim().is_empty()).scan(indentation(lines[at]), |inside, line| {
        let is_outer = indentation(line) < *inside;
        *inside = (*inside).min(indentation(line));
        Some((is_outer, line.trim()))
    });
    let is_loop =
        |line: &str| ["for ", "while ", "async for "].iter().any(|word| line.starts_with(word)) && line.ends_with(':');
    // A traceback quotes lines alone.
    let is_quoted = at > 0 && lines[at - 1].trim_start().starts_with("File \"");
    !is_quoted && outer.any(|(is_outer, line)| is_outer && is_loop(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_a_loop_appends_to() {
        let list = |log: &str| match Kept::of(log) {
            Some(Kept::List { list, .. }) => Some(list),
            _ => None,
        };
        let of = |body: &str| list(&format!("kept = []\nfor batch in loader:\n    with torch.no_grad():\n{body}\n"));
        assert_eq!(of("        y = model(batch)\n        kept.append(y)").as_deref(), Some("kept"));
        for none in [
            "        kept.append(y.cpu())",
            "        kept.append(float(loss))",
            "        kept.append('a')",
            "kept.append(y)",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(list("for x in y:\n  File \"a.py\", line 3, in f\n    kept.append(y)"), None);
    }

    #[test]
    fn models_of_a_loop() {
        let code =
            "# Keras 2\nfor units in all:\n    model = Sequential([Dense(units)])\n    model.compile('adam', 'mse')\n";
        assert_eq!(Kept::of(code), Some(Kept::Models));
        assert_eq!(Kept::of(&[code, "    K.clear_session()\n"].concat()), None);
    }

    #[test]
    fn sums_of_losses() {
        let of = |value: &str| {
            Kept::of(&format!("for x in loader:\n    loss = f(x)\n    total += {value}\n    loss.backward()\n"))
        };
        let sum = |value: &str| Kept::Sum { sum: "total".to_owned(), value: Some(value.to_owned()) };
        assert_eq!(of("output.loss"), Some(sum("output.loss")));
        assert_eq!(Kept::of("for x in y:\n    total += f(x).loss\ntotal.backward()\n"), None);
        assert_eq!((of("loss.item()"), of("accuracy"), of("1")), (None, None, None));
    }

    #[test]
    fn checkpoints_on_the_device() {
        let of = |place: &str, behind: &str| {
            Kept::of(&format!(
                "state = torch.load(path, map_location={place})\nmodel.load_state_dict(state['model'])\n{behind}"
            ))
        };
        let of_ranks = "DDP on four GPUs\nmodel = Model.load_from_checkpoint(\n    path, **options)";
        assert_eq!(Kept::of(of_ranks), Some(Kept::OfEachRank));
        assert_eq!(Kept::of(&of_ranks.replace("**options", "map_location='cpu'")), None);
        assert_eq!(of("device", ""), Some(Kept::Checkpoint("state".to_owned())));
        let bare = "state = torch.load(path)\nmodel.load_state_dict(state)";
        assert_eq!(Kept::of(bare), Some(Kept::Checkpoint("state".to_owned())));
        let nested = "optimizer.load_state_dict(torch.load(path))";
        assert_eq!(Kept::of(nested), Some(Kept::Checkpoint("state".to_owned())));
        assert_eq!((of("'cpu'", ""), of("device", "del state"), of("torch.device('cpu')", "")), (None, None, None));
    }
}
