//! The arrays of a set of programs: merges arguments that are one array.

use super::loaded::Loaded;
use foldhash::HashMap;
use std::collections::BTreeMap;
use tilewise::Shape;

/// An array that a set of programs holds whichever program runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResidentArray {
    /// The argument's name; empty if the text has none.
    pub name: String,
    /// The array, with its layout.
    pub shape: Shape,
    /// Bytes it takes.
    pub bytes: u64,
    /// Bytes of padding in it.
    pub padding_bytes: u64,
    /// Numbers of the programs that have it.
    pub programs: Vec<usize>,
    /// Numbers of the programs that it is donated to.
    pub donated_to: Vec<usize>,
    /// Whether it is a part of the cache that [pages](super::PageArrays) count.
    pub is_pages: bool,
    /// Whether other programs have an array of that name, type and dimensions in another layout: each layout is held.
    pub is_laid_out_otherwise: bool,
}

/// All resident arrays, and the bytes of call inputs.
pub(super) struct Residents {
    pub(super) arrays: Vec<ResidentArray>,
    /// By program, bytes of inputs that are not resident.
    pub(super) inputs: Vec<u64>,
}

impl Residents {
    pub(super) fn of(loaded: &[Loaded<'_>]) -> Self {
        // Arguments, as program and index, by name and by how often the program has had that name before.
        let mut named: BTreeMap<(String, usize), Vec<(usize, usize)>> = BTreeMap::new();
        for (number, program) in loaded.iter().enumerate() {
            let mut times: HashMap<&str, usize> = HashMap::default();
            for (at, argument) in program.arguments.iter().enumerate() {
                // Arguments without a name aren't shared.
                let own = format!("\0{number}");
                let name = argument.name.clone().unwrap_or(own);
                let time = times.entry(argument.name.as_deref().unwrap_or_default()).or_default();
                named.entry((name, *time)).or_default().push((number, at));
                *time += 1;
            }
        }
        let mut all = Self { arrays: Vec::new(), inputs: vec![0; loaded.len()] };
        for arguments in named.values() {
            all.add(arguments, loaded);
        }
        all.arrays.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.name.cmp(&other.name)));
        all
    }

    /// Adds the arguments of one name, each as program and index.
    fn add(&mut self, arguments: &[(usize, usize)], loaded: &[Loaded<'_>]) {
        let of = |(program, at): (usize, usize)| &loaded[program].arguments[at];
        let Some(first) = arguments.first().map(|argument| &of(*argument).shape) else { return };
        if arguments.iter().any(|argument| !is_same_array(&of(*argument).shape, first)) {
            for &(program, at) in arguments {
                let bytes = &mut self.inputs[program];
                *bytes = bytes.saturating_add(loaded[program].arguments[at].bytes);
            }
            return;
        }
        let start = self.arrays.len();
        for &(program, at) in arguments {
            let argument = of((program, at));
            let known = self.arrays[start..].iter_mut().find(|array| array.shape == argument.shape);
            if let Some(array) = known {
                array.programs.push(program);
                array.donated_to.extend(argument.is_donated.then_some(program));
                continue;
            }
            self.arrays.push(ResidentArray {
                name: argument.name.clone().unwrap_or_default(),
                shape: argument.shape.clone(),
                bytes: argument.bytes,
                padding_bytes: argument.padding_bytes,
                programs: vec![program],
                donated_to: argument.is_donated.then_some(program).into_iter().collect(),
                is_pages: false,
                is_laid_out_otherwise: false,
            });
        }
        let is_several = self.arrays.len() > start + 1;
        self.arrays[start..].iter_mut().for_each(|array| array.is_laid_out_otherwise = is_several);
    }
}

/// Whether two arrays have one type and the same dimensions, whatever their layouts.
fn is_same_array(one: &Shape, other: &Shape) -> bool {
    one.element_type() == other.element_type() && one.dimensions() == other.dimensions()
}
