//! The classes of a network's layers, and the line that calls them.

use super::call_stacks::{Calls, calls, innermost, is_shared, shared};
use crate::program::{SourceLine, is_installed, is_name};
use foldhash::HashMap;
use tilewise_hlo::{Instruction, SourceLocation};

/// The most instructions whose call stacks are compared.
const LOOKED_AT: usize = 4096;

/// The calls of repeated layers.
pub(super) struct LayerCalls {
    /// Their classes; empty if unknown.
    pub(super) classes: Vec<String>,
    /// The line that calls each of them, or the first; `None` if unknown.
    pub(super) line: Option<SourceLine>,
}

impl LayerCalls {
    /// The calls of the layers at `path`, of which some instructions are known.
    pub(super) fn of<'m>(path: Option<&str>, instructions: impl Iterator<Item = Instruction<'m>>) -> Self {
        let stacks: Vec<Calls<'m>> = instructions.take(LOOKED_AT).map(|at| calls(&at)).collect();
        let named = || path.and_then(|path| class_named(path, &stacks)).map(|class| vec![class]);
        let classes = path.and_then(classes_in).or_else(named).unwrap_or_default();
        let before = |class: &String| {
            let within = |calls: &Calls<'m>| calls.iter().position(|frame| class_of(frame) == Some(class));
            stacks.iter().find_map(|calls| innermost(&calls[..within(calls)?]))
        };
        if let Some(line) = classes.first().and_then(before) {
            return Self { classes, line: Some(line) };
        }
        let shared = shared(stacks.iter());
        let classes = if classes.is_empty() { next_class(&stacks, shared).into_iter().collect() } else { classes };
        Self { classes, line: innermost(shared) }
    }
}

/// The class whose method nearly all call stacks enter after the calls that they share.
fn next_class(stacks: &[Calls<'_>], shared: &[SourceLocation<'_>]) -> Option<String> {
    let within = stacks.iter().filter(|calls| calls.starts_with(shared));
    entered(within.map(|calls| calls.get(shared.len())))
}

/// The class whose method a line calls in nearly all call stacks that go on from there.
pub(super) fn class_called<'m>(
    line: &SourceLine,
    instructions: impl Iterator<Item = Instruction<'m>>,
) -> Option<String> {
    let stacks: Vec<Calls<'m>> = instructions.take(LOOKED_AT).map(|at| calls(&at)).collect();
    let is_it = |frame: &SourceLocation<'_>| *frame.file == *line.file && frame.line == line.line;
    // JAX repeats the callers of loops in loops: one that comes again calls another line.
    let below = |calls: &Calls<'m>| {
        let (above, below) = calls.split_at(calls.iter().rposition(is_it)? + 1);
        below.iter().find(|at| !is_installed(&at.file)).filter(|at| !above.contains(at)).cloned()
    };
    let own: Vec<SourceLocation<'m>> = stacks.iter().filter_map(below).collect();
    entered(own.iter().map(Some))
}

/// The class of nearly all calls.
fn entered<'f, 'm: 'f>(all: impl Iterator<Item = Option<&'f SourceLocation<'m>>>) -> Option<String> {
    let (mut counts, mut count): (HashMap<&str, usize>, usize) = Default::default();
    for frame in all {
        count += 1;
        if let Some(class) = frame.and_then(class_of) {
            *counts.entry(class).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(class, count)| (*count, *class));
    most.filter(|(_, most)| is_shared(*most, count)).map(|(class, _)| class.to_owned())
}

/// `Block` of `make.<locals>.Block.__call__`
fn class_of<'f>(frame: &'f SourceLocation<'_>) -> Option<&'f str> {
    let class = frame.function.as_deref()?.strip_suffix(".__call__")?.rsplit('.').next()?;
    is_class(class).then_some(class)
}

fn is_class(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase()) && is_name(name)
}

/// The classes of layers by the names that Flax gives modules without one, `Block_0` of a `Block`; `None` for other names.
fn classes_in(path: &str) -> Option<Vec<String>> {
    let last = path.rsplit('/').next()?;
    let class = |name: &str| {
        let (class, number) = name.rsplit_once('_')?;
        let is_number = number == "*" || !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        (is_number && is_class(class)).then(|| class.to_owned())
    };
    let names = last.trim_start_matches('{').trim_end_matches('}').split(',');
    let mut classes = names.map(class).collect::<Option<Vec<_>>>()?;
    classes.dedup();
    Some(classes)
}

/// The class of layers that Haiku names after it, `interaction_1` of an `Interaction`, among those of call stacks.
fn class_named(path: &str, stacks: &[Calls<'_>]) -> Option<String> {
    let (name, _) = path.rsplit('/').next()?.rsplit_once('_')?;
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let mut classes = stacks.iter().flatten().filter_map(class_of);
    classes.find(|class| plain(class) == plain(name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_hlo::Module;

    #[test]
    fn flax_names_modules_after_their_classes() {
        let classes = |path| classes_in(path).unwrap_or_default();
        assert_eq!(classes("MlpMixer/MixerBlock_*"), ["MixerBlock"]);
        assert_eq!(classes("Unet/{Encoder_0,Decoder_0}"), ["Encoder", "Decoder"]);
        for named in ["transformer/h/*", "encoder/layers_*", "Unet/{down,up}"] {
            assert_eq!(classes_in(named), None, "{named}");
        }
    }

    /// `Net` calls its blocks in a loop at line 20; a cached function's call stack lacks all of it.
    const TABLES: &str = r#"
FileNames
1 "net.py"

FunctionNames
1 "Net.__call__"
2 "Block.__call__"
3 "main"

FileLocations
1 {file_name_id=1 function_name_id=3 line=40 end_line=40 column=1 end_column=2}
2 {file_name_id=1 function_name_id=1 line=20 end_line=20 column=1 end_column=2}
3 {file_name_id=1 function_name_id=2 line=8 end_line=8 column=1 end_column=2}
4 {file_name_id=1 function_name_id=2 line=9 end_line=9 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=3}
"#;

    fn found(path: &str, frames: &[u32]) -> (Vec<String>, Option<u32>) {
        let instruction = |(at, frame): (usize, &u32)| {
            format!(
                "  x{at} = f32[8]{{0}} parameter({at}), metadata={{op_name=\"jit(f)/mul\" stack_frame_id={frame}}}\n"
            )
        };
        let body: String = frames.iter().enumerate().map(instruction).collect();
        let module = Module::parse(format!("HloModule jit_f\n{TABLES}\nENTRY main {{\n{body}}}")).expect("a program");
        let calls = LayerCalls::of(Some(path), module.instructions());
        (calls.classes, calls.line.map(|line| line.line))
    }

    #[test]
    fn call_stacks_tell_the_class_and_its_call() {
        assert_eq!(found("h/*", &[3, 4, 3, 4]), (vec!["Block".to_owned()], Some(20)));
        // The block's own lines, such as a call of a smaller module, are no layers.
        assert_eq!(found("block_*", &[3, 3]), (vec!["Block".to_owned()], Some(20)));
        // Half of the call stacks are a cached function's.
        assert_eq!(found("Net/Block_*", &[1, 3, 1, 4]), (vec!["Block".to_owned()], Some(20)));
        assert_eq!(found("h/*", &[1, 3, 1, 4]), (Vec::new(), Some(40)));
    }
}
