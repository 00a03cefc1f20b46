//! Lines of the reader's own source, and their edits.

mod layer_call;
mod linen;

use crate::findings::{Jitted, TakenGradient, gradient_in_parts, is_name, jitted};
use serde::Serialize;
use std::collections::BTreeMap;
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{Finding, GradientSums, KeptByLoop, LargeDimension, Library, MappedCall, UndonatedState},
};

/// Lines above a call in which its arguments are made.
const ABOVE: u32 = 32;
/// Words in code that move rows elsewhere.
const MOVES: [&str; 7] = [".T", "transpose", "swapaxes", "moveaxis", "reshape", "stack", "concatenate"];
/// Longer lines are cut.
const LONGEST_LINE: usize = 200;

/// Files of source, for a report to quote.
///
/// ```
/// use tilewise_report::{AuditOutput, Quotes};
///
/// let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8,3]{1,0:T(8,128)} parameter(0), metadata={op_name=\"x\" source_file=\"a.py\" source_line=2} }";
/// let program = tilewise_audit::Program::parse(text)?;
/// let mut output = AuditOutput::new(tilewise_audit::Audit::new(&program).run());
/// output.quotes = Quotes::read(&output.report, |file| (file == "a.py").then(|| "import jax\nx = table[i]\n".to_owned()));
/// assert_eq!(output.summary().causes[0].quote.as_deref(), Some("x = table[i]"));
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Quotes(pub(crate) BTreeMap<String, String>);

/// A line of the reader's source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QuotedLine {
    /// Its file, as the program names it.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its text, if the source is at hand.
    pub text: Option<String>,
}

/// A line of the reader's source, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LineEdit {
    /// Its file, as the program names it.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// The line now, with those that its call goes on in.
    pub before: String,
    /// The line after the change, perhaps behind a new one.
    pub after: String,
}

impl LineEdit {
    /// The new line, where it comes above the old one, which stays.
    pub(crate) fn above(&self) -> Option<&str> {
        self.after.strip_suffix(&*self.before)?.strip_suffix('\n')
    }
}

impl Quotes {
    /// The text of a line.
    pub(crate) fn of(&self, file: &str, line: u32) -> Option<String> {
        let number = usize::try_from(line).ok()?.checked_sub(1)?;
        let text = self.0.get(file)?.lines().nth(number)?.trim();
        (!text.is_empty()).then(|| text.chars().take(LONGEST_LINE).collect())
    }

    /// The line in which a call begins with those that it goes on in, as they are, and the call in one line.
    fn call(&self, file: &str, line: u32) -> Option<(String, String)> {
        /// Maximum number of lines of a call.
        const MOST: usize = 8;
        let number = usize::try_from(line).ok()?.checked_sub(1)?;
        let lines = || self.0.get(file).into_iter().flat_map(|text| text.lines()).skip(number).map(str::trim_end);
        let first = lines().next()?;
        let indent = first.len() - first.trim_start().len();
        let (mut before, mut joined) = (String::new(), String::new());
        for text in lines().take(MOST) {
            let own = (text.len() - text.trim_start().len()).min(indent);
            if !before.is_empty() {
                before.push('\n');
                joined.push_str(if joined.ends_with(['(', '[', '{']) { "" } else { " " });
            }
            before.push_str(text.get(own..).unwrap_or(text));
            joined.push_str(text.trim());
            let depth = letters(&joined).fold(0_i64, |depth, (_, letter)| match letter {
                '(' | '[' | '{' => depth + 1,
                ')' | ']' | '}' => depth - 1,
                _ => depth,
            });
            if depth <= 0 {
                return (joined.chars().count() < LONGEST_LINE).then_some((before, joined));
            }
        }
        None
    }

    /// The program's gradient in parts, and the edit of the line that takes the gradient: the line that the program
    /// names, or the only one. `None` for the edit unless that line passes the whole batch.
    pub(crate) fn gradient(&self, about: &Recommendation) -> Option<(String, Option<LineEdit>)> {
        let taken = |(file, number, line)| Some((file, number, line, taken(line)?));
        let mut found: Vec<_> = self.lines().filter_map(taken).collect();
        let is_named =
            |file: &str, line| about.edited.as_ref().is_some_and(|at| at.line.file == file && at.line.line == line);
        if found.len() > 1 {
            found.retain(|(file, line, ..)| is_named(file, *line));
        }
        let [(file, line, text, (mut gradient, [before, arguments, end]))] = <[_; 1]>::try_from(found).ok()?;
        let inputs: Vec<&str> = about.inputs().map(|(name, _)| name).collect();
        let given: Vec<&str> = arguments.split(", ").collect();
        let passes_all = given.len() == inputs.len() + 1 && given.ends_with(&inputs);
        let behind = given.get(1..).unwrap_or_default();
        let passed = |input: &&str| match behind.iter().find(|name| name == &input) {
            Some(name) => Some(*name),
            None => self.made_of(input, behind, file, line),
        };
        let batch: Option<Vec<&str>> = inputs.iter().map(passed).collect();
        if let Some(batch) = batch.filter(|_| !passes_all && behind.iter().all(|name| is_name(name))) {
            gradient.arguments = behind.to_vec();
            gradient.batch = batch;
        }
        gradient.takes_batch = passes_all || !gradient.arguments.is_empty();
        let code = gradient_in_parts(about, &gradient)?;
        let edit = gradient.takes_batch.then(|| LineEdit {
            file: file.to_owned(),
            line,
            before: text.trim().to_owned(),
            after: format!("{before}{}({arguments}{end}", gradient.in_parts()).trim().to_owned(),
        });
        Some((code, edit))
    }

    /// The one of these names that the lines above another one assign what they make of an input, row by row.
    fn made_of<'n>(&self, input: &str, names: &[&'n str], file: &str, line: u32) -> Option<&'n str> {
        let above = self.lines().filter(|(of, number, _)| *of == file && *number < line && line - number <= ABOVE);
        let mut found = above.filter_map(|(_, _, text)| {
            let (name, made) = text.split_once(" = ")?;
            let is_moved = MOVES.iter().any(|word| made.contains(word));
            names.iter().copied().find(|of| *of == name.trim()).filter(|_| has_word(made, input) && !is_moved)
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// The edit of the constant that has the number of rows in a call, where that is to be smaller.
    pub(crate) fn rows_of_call(&self, about: &Recommendation) -> Option<LineEdit> {
        match about.finding {
            Finding::LargeDimension(LargeDimension { gradients: GradientSums::None, joint: None, size, .. }) => {
                self.constant(size, size / about.parts.unwrap_or(2).max(1))
            }
            _ => None,
        }
    }

    /// The edit of the constant that has a size, if exactly one line assigns it: `BATCH = 32`, `BATCH, LENGTH = 32, 128`.
    pub(crate) fn constant(&self, size: u64, to: u64) -> Option<LineEdit> {
        let mut found = self.lines().filter_map(|(file, line, before)| {
            let after = assigned(before, size, to)?.trim().to_owned();
            Some(LineEdit { file: file.to_owned(), line, before: before.trim().to_owned(), after })
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// Whether an edited line names a module that its file doesn't import.
    pub(crate) fn lacks_import(&self, edit: &LineEdit, module: &str) -> bool {
        let is_imported = |text: &String| text.lines().any(|line| line.trim() == format!("import {module}"));
        edit.after.contains(&format!("{module}.")) && !self.0.get(&edit.file).is_some_and(is_imported)
    }

    /// All lines, with their files and numbers.
    fn lines(&self) -> impl Iterator<Item = (&str, u32, &str)> {
        self.0.iter().flat_map(|(file, text)| text.lines().zip(1..).map(move |(line, number)| (&**file, number, line)))
    }

    /// The edit that makes a change, if it is one line and exactly one line qualifies.
    pub(crate) fn edit(&self, about: &Recommendation) -> Option<LineEdit> {
        if let Finding::KeptByLoop(finding) = &about.finding {
            let edit = self.of_loop(finding, about).or_else(|| match finding {
                KeptByLoop { library: Library::Linen, is_checkpointed: false, class: Some(class), .. } => {
                    linen::decorated(self, class, "")
                }
                _ => None,
            });
            if edit.is_some() {
                return edit;
            }
        }
        if let Finding::MappedCall(MappedCall { line, at_once, has_gradient, .. }) = &about.finding {
            let (before, call) = self.call(&line.file, line.line)?;
            let (_, after) = mapped_in_parts(&call, *at_once, *has_gradient)?;
            return Some(LineEdit { file: line.file.clone(), line: line.line, before, after });
        }
        if let (Finding::RepeatedLayers(finding), Some(edited)) = (&about.finding, &about.edited) {
            let (file, line) = (&edited.line.file, edited.line.line);
            let before = self.of(file, line).filter(|before| before.chars().count() < LONGEST_LINE)?;
            return match (layer_call::checkpointed(finding, &before), &finding.layers.classes[..]) {
                (Some(after), _) => Some(LineEdit { file: file.clone(), line, before, after }),
                (None, [class]) if finding.library == Library::Linen && !finding.is_checkpointed => {
                    linen::decorated(self, class, &before)
                }
                _ => None,
            };
        }
        let edited = |line: &str, next: &str| match &about.finding {
            Finding::UndonatedState(finding) => donated(finding, line, next),
            Finding::KeptByLoop(finding) => recomputed(finding, about, line),
            Finding::LargeDimension(finding) => in_turn(finding, about, line),
            _ => None,
        };
        let lines = self.0.iter().flat_map(|(file, text)| {
            let next = text.lines().skip(1).chain([""]);
            text.lines().zip(next).zip(1..).map(move |((line, next), number)| (file, number, line, next))
        });
        let mut edits = lines.filter_map(|(file, line, before, next)| {
            let after = edited(before, next)?;
            let (file, before, after) = (file.clone(), before.trim().to_owned(), after.trim().to_owned());
            (before.chars().count() <= LONGEST_LINE).then_some(LineEdit { file, line, before, after })
        });
        edits.next().filter(|_| edits.next().is_none())
    }

    /// The edit of a loop at its own line: its step is the first argument, there or at the beginning of the next line.
    fn of_loop(&self, finding: &KeptByLoop, about: &Recommendation) -> Option<LineEdit> {
        let is_plain = !finding.is_checkpointed && finding.segments.is_none();
        let source = about.array.as_ref()?.source.as_ref().filter(|_| is_plain && finding.library == Library::Jax)?;
        let text = self.of(&source.file, source.line)?;
        let (line, before) = match text.split_once(SCAN)? {
            (_, "") => (source.line + 1, self.of(&source.file, source.line + 1)?),
            _ => (source.line, text),
        };
        let (call, given) =
            before.split_once(SCAN).map_or(("", &*before), |(_, given)| before.split_at(before.len() - given.len()));
        let step = first_argument(given)?;
        let after = format!("{call}jax.checkpoint({step}){}", &given[step.len()..]);
        let is_whole = before.chars().count() < LONGEST_LINE;
        is_whole.then(|| LineEdit { file: source.file.clone(), line, before, after })
    }
}

/// Calls that take a gradient by the first argument.
const CALLS: [&str; 6] =
    ["eqx.filter_value_and_grad", "eqx.filter_grad", "jax.value_and_grad", "jax.grad", "value_and_grad", "grad"];

/// The gradient that a line takes: `loss, grads = jax.value_and_grad(loss_fn)(params, batch)`.
fn taken(line: &str) -> Option<(TakenGradient<'_>, [&str; 3])> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let is_call = |call: &&str| {
        let before = line.split(&format!("{call}(")).next().unwrap_or_default();
        let is_whole = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
        before.len() < line.len() && !before.ends_with(is_whole)
    };
    let call = CALLS.into_iter().find(is_call)?;
    let (before, behind) = line.split_once(&format!("{call}("))?;
    let (given, behind) = behind.split_at(closing(behind)?);
    // `argnums` names other arguments than the first.
    let (loss, options) = given.split_at(given.find(',').unwrap_or(given.len()));
    let arguments = behind.strip_prefix(")(").filter(|_| options.is_empty() || options == ", has_aux=True")?;
    let (arguments, end) = arguments.split_at(closing(arguments)?);
    let gradient = TakenGradient { call, loss, options, takes_batch: true, arguments: Vec::new(), batch: Vec::new() };
    is_name(loss).then_some((gradient, [before, arguments, end]))
}

/// `step = jax.jit(step)`, `@jax.jit` or `@functools.partial(jax.jit, static_argnums=1)`, with the donated arguments, in place of those
/// that it donates now.
fn donated(finding: &UndonatedState, line: &str, next: &str) -> Option<String> {
    let function = &finding.jit.as_ref()?.function;
    let Jitted { call, option, .. } = jitted(finding)?;
    let is_above = next.trim_start().starts_with(&format!("def {function}("));
    if is_above && line.trim() == format!("@{call}") {
        return Some(format!("@functools.partial({call}, {option})"));
    }
    // `from jax import jit` has the last word alone.
    let last = call.rsplit('.').next()?;
    let decorator = line.split_once("partial(").filter(|(before, _)| is_above && before.trim_start().starts_with('@'));
    let (before, behind, is_it) = match decorator {
        Some((before, behind)) => (before.len() + "partial(".len(), behind, first_argument(behind)? == call),
        None => {
            let (before, behind) = line.split_once(&format!("{last}("))?;
            let given = &behind[..closing(behind)?];
            let given = first_argument(given).unwrap_or(given);
            // A method of an object, or a function with some arguments given.
            let bound = given.split_once("partial(").and_then(|(_, bound)| first_argument(bound));
            let is_it = bound.unwrap_or(given).rsplit('.').next() == Some(function);
            let is_whole = before.strip_suffix(call.strip_suffix(last)?).unwrap_or(before);
            let is_whole = is_whole.chars().next_back().is_none_or(|letter| !letter.is_alphanumeric() && letter != '.');
            (before.len() + last.len() + 1, behind, is_it && is_whole)
        }
    };
    let (given, end) = behind.split_at(closing(behind)?);
    let is_kept =
        |given: &&str| !["donate_argnums=", "donate_argnames=", "donate="].iter().any(|of| given.starts_with(of));
    let given: Vec<&str> = arguments_of(given).into_iter().filter(is_kept).chain([&*option]).collect();
    is_it.then(|| format!("{}{}{end}", &line[..before], given.join(", ")))
}

/// An assignment of whole numbers with `to` in place of `size`, if one of them is that and the names are identifiers, perhaps with
/// a type: a field of a configuration.
fn assigned(line: &str, size: u64, to: u64) -> Option<String> {
    let (names, behind) = line.split_once('=')?;
    let (values, comment) = behind.split_at(behind.find('#').unwrap_or(behind.len()));
    let is_names = names.split(',').all(|name| is_name(untyped(name)));
    let number = |value: &str| value.trim().replace('_', "").parse::<u64>().ok();
    let parts: Vec<&str> = values.split(',').collect();
    let mut same = parts.iter().enumerate().filter(|(_, value)| number(value) == Some(size));
    let (at, value) = same.next()?;
    let is_one = same.next().is_none() && is_names && names.split(',').count() == parts.len();
    let new = value.replacen(value.trim(), &to.to_string(), 1);
    let all: Vec<&str> = (0..parts.len()).map(|number| if number == at { &*new } else { parts[number] }).collect();
    is_one.then(|| format!("{names}={}{comment}", all.join(",")))
}

/// `rays` of `rays: int`
fn untyped(name: &str) -> &str {
    name.split_once(':').filter(|(_, of)| of.trim() == "int").map_or(name, |(name, _)| name).trim()
}

/// `jax.vmap(f)(x, y)` of the whole batch as a loop over parts of it: of the inputs, each with a gradient of its own.
fn in_turn(finding: &LargeDimension, about: &Recommendation, line: &str) -> Option<String> {
    let inputs: Vec<&str> = finding.inputs.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    let is_leading = !inputs.is_empty() && finding.inputs.iter().all(|(at, _)| *at == 0);
    let at_once = (finding.size / about.parts.unwrap_or(2).max(1)).max(1);
    let (mapped, line) = mapped_in_parts(line, at_once, false)?;
    (finding.gradients == GradientSums::Apart && is_leading && mapped == inputs).then_some(line)
}

/// The mapped arguments of a call `jax.vmap(f)(x, y)`, and its line as `jax.lax.map` of some positions at a time. A backward pass would
/// keep all parts.
fn mapped_in_parts(line: &str, at_once: u64, has_gradient: bool) -> Option<(Vec<&str>, String)> {
    let (before, behind) = line.split_once("vmap(").filter(|_| !line.trim_start().starts_with('#'))?;
    let before = before.strip_suffix("jax.").unwrap_or(before);
    if before.ends_with(|letter: char| letter.is_alphanumeric() || ['_', '.'].contains(&letter)) {
        return None;
    }
    let (mapping, behind) = behind.split_at(closing(behind)?);
    let (arguments, end) = behind.strip_prefix(")(").and_then(|given| Some(given.split_at(closing(given)?)))?;
    let mapping = arguments_of(mapping);
    let (function, given) = (*mapping.first()?, arguments_of(arguments));
    // By argument, whether it is mapped, along its first dimension.
    let axes: Vec<&str> = match mapping.get(1).map(|axes| axes.strip_prefix("in_axes=").unwrap_or(axes)) {
        None | Some("0") => vec!["0"; given.len()],
        Some(axes) => arguments_of(axes.strip_prefix('(')?.strip_suffix(')')?),
    };
    let mapped: Vec<&str> = given.iter().zip(&axes).filter(|(_, axis)| **axis == "0").map(|(name, _)| *name).collect();
    let is_read = mapping.len() <= 2 && axes.iter().all(|axis| ["0", "None"].contains(axis));
    if !is_read || axes.len() != given.len() || mapped.is_empty() || given.iter().any(|name| name.starts_with('*')) {
        return None;
    }
    let is_lambda = function.starts_with("lambda ");
    let callee = if is_lambda { format!("({function})") } else { function.to_owned() };
    // Modules of Equinox aren't hashable, as a function has to be for a checkpoint.
    let is_function = !has_gradient || is_lambda;
    let (call, all) = match &mapped[..] {
        [one] if given.len() == 1 && is_function => (function.to_owned(), (*one).to_owned()),
        [one] => {
            let passed = given.iter().zip(&axes).map(|(name, axis)| if *axis == "0" { "one" } else { name });
            (format!("lambda one: {callee}({})", passed.collect::<Vec<_>>().join(", ")), (*one).to_owned())
        }
        _ => {
            let mut number = 0..;
            let passed = given.iter().zip(&axes).map(|(name, axis)| match *axis {
                "0" => format!("some[{}]", number.next().unwrap_or(0)),
                _ => (*name).to_owned(),
            });
            let passed = passed.collect::<Vec<_>>().join(", ");
            let passed = if mapped.len() == given.len() { "*some".to_owned() } else { passed };
            (format!("lambda some: {callee}({passed})"), format!("({})", mapped.join(", ")))
        }
    };
    let call = if has_gradient { format!("jax.checkpoint({call})") } else { call };
    Some((mapped, format!("{before}jax.lax.map({call}, {all}, batch_size={at_once}{end}")))
}

/// The arguments of a call, apart.
fn arguments_of(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = comma(rest) {
        found.push(&rest[..at]);
        rest = rest[at + 1..].trim_start();
    }
    found.extend((!rest.is_empty()).then_some(rest));
    found
}

/// Whether a line of code has a name.
fn has_word(text: &str, name: &str) -> bool {
    let is_other = |letter: char| !letter.is_alphanumeric() && letter != '_';
    text.split(is_other).any(|word| word == name)
}

/// The call of a loop over steps.
const SCAN: &str = "lax.scan(";

/// `jax.lax.scan(step, …)` with the step recomputed, or its policy with nothing saved.
fn recomputed(finding: &KeptByLoop, about: &Recommendation, line: &str) -> Option<String> {
    if finding.segments.is_some() {
        return None;
    }
    if finding.is_checkpointed {
        let (before, behind) = line.split_once("checkpoint_policies.")?;
        let name = behind.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(behind.len());
        let is_call = behind[name..].starts_with('(');
        let is_new = name > 0 && !is_call && &behind[..name] != "nothing_saveable";
        return is_new.then(|| format!("{before}checkpoint_policies.nothing_saveable{}", &behind[name..]));
    }
    if finding.is_stack {
        return stacked(line);
    }
    // The function of a value in its step.
    let function = || about.array.as_ref()?.source.as_ref()?.function.as_deref()?.rsplit('.').next();
    let (call, checkpoint, step) = match finding.library {
        Library::Haiku => ("dynamic_unroll(", "hk.remat", function()?),
        Library::Linen | Library::Nnx | Library::Equinox => return None,
        _ => (SCAN, "jax.checkpoint", function()?),
    };
    let (before, behind) = line.split_once(&format!("{call}{step}"))?;
    let is_step = is_name(step) && behind.starts_with(',');
    is_step.then(|| format!("{before}{call}{checkpoint}({step}){behind}"))
}

/// `hk.experimental.layer_stack(n)(block)(x)` with each layer recomputed.
fn stacked(line: &str) -> Option<String> {
    const CALL: &str = "layer_stack(";
    let (before, behind) = line.split_once(CALL).filter(|(before, _)| !before.trim_start().starts_with('#'))?;
    let (options, behind) = behind.split_at(closing(behind)?);
    let given = behind.strip_prefix(")(")?;
    let (layer, behind) = given.split_at(closing(given)?);
    is_name(layer).then(|| format!("{before}{CALL}{options})(hk.remat({layer}){behind}"))
}

/// The letters of a line of code outside of texts, each with its byte; none behind a comment, or a text that doesn't end.
fn letters(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    let is_outside = move |(_, letter): &(usize, char)| {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(*letter),
            (None, _) => return true,
            (Some(open), letter) if open == *letter => quote = None,
            _ => {}
        }
        false
    };
    text.char_indices().filter(is_outside).take_while(|(_, letter)| *letter != '#')
}

/// The first of a call's arguments, if others follow in the line: `step`, `lambda x, p: (layer(x, p), None)`.
fn first_argument(text: &str) -> Option<&str> {
    comma(text).filter(|at| *at > 0 && !text.starts_with("jax.checkpoint(")).map(|at| &text[..at])
}

/// The byte of the comma behind a call's first argument.
fn comma(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    // The commas of a lambda's parameters come before its colon.
    let mut is_body = !text.starts_with("lambda ");
    for (at, letter) in letters(text) {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ':' if depth == 0 => is_body = true,
            ',' if depth == 0 && is_body => return Some(at),
            _ => {}
        }
    }
    None
}

/// The byte of the bracket that closes one opened before the text; `None` if it isn't in the line.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, letter) in letters(text) {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return Some(at),
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{assigned, closing, first_argument, stacked, taken};

    #[test]
    fn gradients_with_their_options() {
        let read = |line: &'static str| {
            let (taken, [before, arguments, end]) = taken(line)?;
            Some((taken.call, taken.loss, taken.options, before, arguments, end))
        };
        assert_eq!(
            read("(l, aux), g = eqx.filter_value_and_grad(loss, has_aux=True)(model, batch)"),
            Some(("eqx.filter_value_and_grad", "loss", ", has_aux=True", "(l, aux), g = ", "model, batch", ")"))
        );
        assert_eq!(read("g = jax.grad(f)(p, x)"), Some(("jax.grad", "f", "", "g = ", "p, x", ")")));
        // Other arguments than the first, a call that isn't taken at once, a comment.
        for line in ["g = jax.grad(f, argnums=1)(p, x)", "g = jax.grad(f)", "# jax.grad(f)(p, x)", "my_grad(f)(p)"] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn arguments_that_are_made_of_inputs() {
        let quotes = |made: &str| {
            let text = format!("def step(p, raw):\n  {made}\n  return jax.grad(loss)(p, batch, own)");
            super::Quotes([("a.py".to_owned(), text)].into())
        };
        let of_raw = |made: &str| quotes(made).made_of("raw", &["batch", "own"], "a.py", 3) == Some("batch");
        assert!(of_raw("batch = normalise(raw / 1024)"));
        // Other rows, other names, lines behind the call.
        for made in ["batch = raw.T", "batch = normalise(raw_2)", "others = f(raw)", "batch += raw"] {
            assert!(!of_raw(made), "{made}");
        }
        assert_eq!(quotes("batch = f(raw)").made_of("raw", &["batch", "own"], "a.py", 2), None);
    }

    #[test]
    fn calls_that_go_on() {
        let call = |text: &str| super::Quotes([("a.py".to_owned(), text.to_owned())].into()).call("a.py", 1);
        let found = call("  y = jax.vmap(f)(\n      x, z)\n  return y");
        assert_eq!(found, Some(("y = jax.vmap(f)(\n    x, z)".to_owned(), "y = jax.vmap(f)(x, z)".to_owned())));
        assert_eq!(call("y = f(x)").map(|(before, _)| before).as_deref(), Some("y = f(x)"));
        // A comment hides the rest; another kind of space; a call without an end.
        assert_eq!(call("y = f(  # of x\n  x)"), None);
        assert_eq!(call("\ty = f(\n\u{3000}x)").map(|(_, call)| call).as_deref(), Some("y = f(x)"));
        assert_eq!(call(&"f(\n".repeat(99)), None);
    }

    #[test]
    fn layers_of_a_stack() {
        let edited = stacked("a = hk.experimental.layer_stack(N, name=\"t\")(block)(a)");
        assert_eq!(edited.as_deref(), Some("a = hk.experimental.layer_stack(N, name=\"t\")(hk.remat(block))(a)"));
        for none in
            ["layer_stack(4)", "layer_stack(4)(hk.remat(block))(x)", "# layer_stack(4)(f)(x)", "layer_stack(4)(f"]
        {
            assert_eq!(stacked(none), None, "{none}");
        }
    }

    #[test]
    fn constants_of_a_size() {
        let edited = |line: &str| assigned(line, 131_072, 65_536);
        assert_eq!(edited("CHUNK = 131_072  # rays").as_deref(), Some("CHUNK = 65536  # rays"));
        assert_eq!(edited("    rays: int = 131072").as_deref(), Some("    rays: int = 65536"));
        assert_eq!(edited("rays, width = 131072, 800").as_deref(), Some("rays, width = 65536, 800"));
        // Other values, comparisons, options, attributes of calls.
        for line in ["CHUNK = 131073", "n == 131072", "f(n=131072)", "a, b = 131072", "x['n'] = 131072", "# n = 131072"]
        {
            assert_eq!(edited(line), None, "{line}");
        }
    }

    #[test]
    fn first_arguments_of_calls() {
        assert_eq!(first_argument("step, x, xs)"), Some("step"));
        assert_eq!(first_argument("lambda x, p: (f(x, p), None), x, ps)"), Some("lambda x, p: (f(x, p), None)"));
        assert_eq!(first_argument("partial(step, c=1), x)"), Some("partial(step, c=1)"));
        assert_eq!(first_argument("f('a,b'), x"), Some("f('a,b')"));
        for none in ["step)", "", ", x", "f('a, x", "jax.checkpoint(step), x)", "lambda x, p"] {
            assert_eq!(first_argument(none), None, "{none}");
        }
    }

    #[test]
    fn a_bracket_closes_after_those_inside() {
        assert_eq!(closing(", static_argnums=(1, 2))(x)"), Some(23));
        assert_eq!(closing(") # the step"), Some(0));
        assert_eq!(closing(", backend=')')"), Some(13));
        assert_eq!(closing(", backend=')"), None);
        assert_eq!(closing(",  # goes on"), None);
    }
}
