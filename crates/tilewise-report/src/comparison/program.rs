//! The compared facts of a program, which a plan lock keeps.

use super::{
    ComparedTime,
    fields::{each_once, is_so, is_zero, yes},
};
use crate::style::cut;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, path::Path};
use tilewise::visible;
use tilewise_audit::{BufferRow, Machine, PeakRow, Report, SourceLine};

/// Compiler versions by package: `libtpu`, `jaxlib`.
pub type Compiler = BTreeMap<String, String>;

/// A program as it is compared, and as a [`Lock`](crate::Lock) keeps it. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ComparedProgram {
    /// The source of its text; not kept in a lock.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The factory that makes it, `FILE.py:FACTORY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Its compiler, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<Compiler>,
    /// Whether all of it was read and sized; else its memory may be larger than given here.
    #[serde(default = "yes", skip_serializing_if = "is_so")]
    pub is_complete: bool,
    /// Its TPU generation, `v5e`; `None` for another machine, and if unknown.
    pub tpu: Option<String>,
    /// The slice, `v5e:2x2`.
    pub topology: Option<String>,
    /// The settings of its factory's call.
    #[serde(default, deserialize_with = "each_once")]
    pub settings: Map<String, Value>,
    /// The hash of what was compiled, without source locations.
    pub hlo: Option<String>,
    /// Its memory.
    pub bytes: ComparedBytes,
    /// The arrays alive at its peak, the largest first.
    pub owners: Vec<Owner>,
    /// Its copies; loops times their trips, as all bytes that are moved.
    pub copies: Count,
    /// Copies at its kernels, by kernel; `None` in a lock from before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_copies: Option<Vec<KernelCopy>>,
    /// Its collectives, by opcode: the bytes of their results.
    #[serde(deserialize_with = "each_once")]
    pub collectives: BTreeMap<String, Count>,
    /// Instructions that the compiler computes twice to save memory.
    pub recomputed: u64,
    /// The time of a run; `None` if its text has no cycle counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<ComparedTime>,
}

/// The memory of a program, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is what it is called, in bytes")]
pub struct ComparedBytes {
    pub argument: u64,
    pub output: u64,
    pub alias: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub constant: u64,
    pub temporary: u64,
    /// The sum of these, with results in donated arguments counted once; without a plan an upper bound.
    pub total: u64,
    /// Padding of the arrays alive at the peak.
    pub padding: u64,
    /// The limit, if known.
    pub limit: Option<u64>,
}

/// [`ComparedBytes`] as read, before the sum is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    argument: u64,
    output: u64,
    alias: u64,
    #[serde(default)]
    constant: u64,
    temporary: u64,
    total: u64,
    padding: u64,
    limit: Option<u64>,
}

impl TryFrom<Unchecked> for ComparedBytes {
    type Error = &'static str;

    fn try_from(read: Unchecked) -> Result<Self, Self::Error> {
        let Unchecked { argument, output, alias, constant, temporary, total, padding, limit } = read;
        let parts = [argument, output, constant, temporary].into_iter().try_fold(0_u64, u64::checked_add);
        match parts.and_then(|parts| parts.checked_sub(alias)) {
            // Without a plan the temporaries are unknown, and the total is an upper bound.
            Some(sum) if sum == total || (temporary == 0 && sum < total) => {
                Ok(Self { argument, output, alias, constant, temporary, total, padding, limit })
            }
            _ => Err("the total isn't the sum"),
        }
    }
}

/// A number of instructions, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each is what it is called")]
pub struct Count {
    pub count: u64,
    pub bytes: u64,
}

/// Copies into, or out of, the kernels of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KernelCopy {
    /// The instruction, without the number that a compiler gives it.
    pub kernel: String,
    /// `operand` or `result`.
    pub side: String,
    /// Bytes that are read and written, in all calls.
    pub bytes: u64,
    /// The file that calls it.
    pub file: Option<String>,
    /// The line there, from 1; not kept in a lock.
    #[serde(default)]
    pub line: Option<u32>,
}

impl KernelCopy {
    fn all(report: &Report) -> Vec<Self> {
        let mut sums: BTreeMap<(String, &str), Self> = BTreeMap::new();
        for kernel in report.kernels() {
            let name = kernel.instruction.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            for array in kernel.arrays().filter(|array| array.copied_bytes() > 0) {
                let side = array.side.as_str();
                let sum = sums.entry((name.to_owned(), side)).or_insert_with(|| Self {
                    kernel: name.to_owned(),
                    side: side.to_owned(),
                    bytes: 0,
                    file: kernel.source.as_ref().map(|source| source.file.clone()),
                    line: kernel.source.as_ref().map(|source| source.line),
                });
                sum.bytes = sum.bytes.saturating_add(array.copied_bytes());
            }
        }
        sums.into_values().collect()
    }
}

/// An array, or equal arrays of one line, and their owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Owner {
    /// The framework's name of the operation or argument; else the instruction's.
    pub op: String,
    /// Its shape, with the layout.
    pub shape: String,
    /// Its bytes.
    pub bytes: u64,
    /// Padding in these bytes; not kept in a lock.
    #[serde(default)]
    pub padding_bytes: u64,
    /// The file that it is written in.
    pub file: Option<String>,
    /// The line there, from 1; not kept in a lock, since it changes with every edit above it.
    #[serde(default)]
    pub line: Option<u32>,
}

impl Owner {
    fn new(op_name: Option<&str>, instruction: &str, shape: String, source: Option<&SourceLine>) -> Self {
        Self {
            op: op_name.unwrap_or(instruction).to_owned(),
            shape,
            bytes: 0,
            padding_bytes: 0,
            file: source.map(|source| source.file.clone()),
            line: source.map(|source| source.line),
        }
    }

    fn at_peak(row: &PeakRow) -> Self {
        let owner = Self::new(row.op_name.as_deref(), &row.instruction, row.shape.to_string(), row.source.as_ref());
        Self { bytes: row.bytes, padding_bytes: row.padding_bytes, ..owner }
    }

    pub(super) fn of_buffer(row: &BufferRow) -> Self {
        let owner = Self::new(row.op_name.as_deref(), &row.instruction, row.shape.to_string(), row.source.as_ref());
        Self { bytes: row.sizes.physical_bytes, padding_bytes: row.sizes.padding_bytes(), ..owner }
    }

    /// The operation and the shape without layouts, cut where it is a long tuple.
    #[must_use]
    pub fn name(&self) -> String {
        const COLUMNS: usize = 60;
        format!("{} {}", self.op, cut(&self.array(), COLUMNS))
    }

    /// The shape without layouts.
    pub(super) fn array(&self) -> String {
        let mut parts = self.shape.split('{');
        let first = parts.next().unwrap_or_default();
        parts.fold(first.to_owned(), |array, part| array + part.split_once('}').map_or("", |(_, rest)| rest))
    }
}

impl ComparedProgram {
    /// The number of owners in a lock.
    const KEPT: usize = 10;

    /// The compared facts of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let (bounds, work) = (&report.memory_bounds, report.work());
        let peak = report.memory_space(0).and_then(|total| total.peak.as_ref());
        let generation = Some(report.machine).filter(|_| !bounds.is_assumed).and_then(Machine::generation);
        let mut owners: Vec<Owner> = peak.iter().flat_map(|peak| &peak.rows).map(Owner::at_peak).collect();
        owners.sort_by(|one, other| {
            other.bytes.cmp(&one.bytes).then_with(|| (&one.op, &one.shape).cmp(&(&other.op, &other.shape)))
        });
        let bytes = report.copies.iter().map(|copy| copy.moved_bytes).fold(0, u64::saturating_add);
        Self {
            source: visible(&report.source).into_owned(),
            program: None,
            compiler: None,
            is_complete: bounds.is_complete,
            tpu: generation.map(|tpu| tpu.name().to_owned()),
            topology: None,
            settings: Map::new(),
            hlo: None,
            bytes: ComparedBytes {
                argument: bounds.argument_bytes,
                output: bounds.output_bytes,
                alias: bounds.alias_bytes,
                constant: bounds.constant_bytes,
                temporary: bounds.temporary_bytes.unwrap_or(0),
                total: bounds.at_most_bytes,
                padding: peak.map_or(0, |peak| peak.padding_bytes),
                limit: report.limit().or(generation.map(tilewise::tpu::Generation::hbm_bytes)),
            },
            owners,
            copies: Count { count: report.copies.len() as u64, bytes },
            kernel_copies: Some(KernelCopy::all(report)),
            collectives: work
                .collectives
                .iter()
                .map(|(kind, sent)| ((*kind).to_owned(), Count { count: sent.count, bytes: sent.bytes }))
                .collect(),
            recomputed: work.recomputed,
            time: ComparedTime::of(report),
        }
    }

    /// Reduces it to the facts in a lock: the largest owners, and files that are the same on other machines, those
    /// below `root` by their path from there.
    #[must_use]
    pub fn kept(mut self, root: Option<&Path>) -> Self {
        self.owners.truncate(Self::KEPT);
        let files = self.owners.iter_mut().map(|owner| &mut owner.file);
        for file in files.chain(self.kernel_copies.iter_mut().flatten().map(|copy| &mut copy.file)) {
            *file = file.as_deref().map(|file| relative(file, root));
        }
        self
    }

    /// Whether it fits; `None` if its limit or its whole memory is unknown. A program that takes all of the limit
    /// doesn't.
    #[must_use]
    pub fn fits(&self) -> Option<bool> {
        self.bytes.limit.map(|limit| self.bytes.total < limit).filter(|fits| self.is_complete || !fits)
    }

    pub(super) fn name<'a>(&self, report: &'a Report) -> &'a str {
        report.module_name.strip_prefix("jit_").unwrap_or(&report.module_name)
    }

    /// Whether the two have different compilers or flags: the same program has the same plan.
    pub(super) fn is_of_another_compiler(&self, other: &Self) -> bool {
        let (one, two) = (&self.bytes, &other.bytes);
        let plan = |bytes: &ComparedBytes| [bytes.argument, bytes.output, bytes.alias, bytes.temporary];
        let differ = |one: &Option<_>, two: &Option<_>| one.is_some() && two.is_some() && one != two;
        differ(&self.compiler, &other.compiler)
            || (self.hlo.is_some() && self.hlo == other.hlo && plan(one) != plan(two))
    }
}

/// A path that is the same on other machines.
fn relative(file: &str, root: Option<&Path>) -> String {
    let path = Path::new(file);
    let slashed = |path: &Path| path.to_string_lossy().replace('\\', "/");
    if let Some(below) = root.and_then(|root| path.strip_prefix(root).ok()) {
        return slashed(below);
    }
    let mut parts = path.components();
    if parts.any(|part| part.as_os_str() == "site-packages") {
        return slashed(parts.as_path());
    }
    match path.file_name() {
        Some(name) if path.is_absolute() => name.to_string_lossy().into_owned(),
        _ => slashed(path),
    }
}
