//! Dumps: detects a file's kind from its first bytes, and selects the files with final programs and with the compiler's
//! plans of them.
//!
//! XLA's dumps hold a program many times over, before and after passes, as text and as proto; only the file names show
//! which belong together and which is the last (`module_0007.jit_f.….after_optimizations.txt`).

use crate::failure::Failure;
use foldhash::HashSet;
use std::{cmp::Ordering, path::is_separator};
use tilewise_hlo::{BufferAssignment, Document, Module};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileKind {
    /// The text of a program, or of several.
    Program,
    /// A program as a proto, by its first bytes alone.
    Proto,
    /// A profile with programs.
    Profile,
    /// The compiler's own plan of a program, as text.
    BufferAssignment,
    /// The audit of a program, as JSON.
    Report,
    /// Live ranges, dumped beside a plan.
    LiveRanges,
    /// A dump's report of memory usage, as text or proto.
    MemoryUsage,
    /// The values of a plan.
    AssignmentValues,
    /// An entry computation without its module's header.
    Part,
    /// Possibly a shape.
    Shape,
    /// Anything else.
    Other,
}

impl FileKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Program,
        Self::Proto,
        Self::Profile,
        Self::BufferAssignment,
        Self::Report,
        Self::LiveRanges,
        Self::MemoryUsage,
        Self::AssignmentValues,
        Self::Part,
        Self::Shape,
        Self::Other,
    ];

    /// The kind of a file, from its first bytes, decompressed. Pass a MiB, since a module's header may be long.
    ///
    /// ```
    /// use tilewise_audit::dump::FileKind;
    ///
    /// assert_eq!(FileKind::of(b"HloModule m, is_scheduled=true\n"), FileKind::Program);
    /// assert_eq!(FileKind::of(b"BufferAssignment:\n"), FileKind::BufferAssignment);
    /// ```
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        if tilewise_hlo::is_proto(head) {
            return Self::Proto;
        }
        if tilewise_hlo::is_profile(head) {
            return Self::Profile;
        }
        let text = String::from_utf8_lossy(head);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let has_line = |start: &str| text.lines().any(|line| line.starts_with(start));
        match text {
            _ if BufferAssignment::is_text(text) => Self::BufferAssignment,
            _ if text.starts_with("HloLiveRange") => Self::LiveRanges,
            _ if text.contains("used_by_n_values") => Self::MemoryUsage,
            _ if text.starts_with("Total bytes used:") => Self::AssignmentValues,
            _ if has_line("HloModule ") => Self::Program,
            _ if text.starts_with('{') => Self::Report,
            _ if has_line("ENTRY ") => Self::Part,
            _ if text.trim_end().lines().count() <= 2 && text.contains(['[', '(']) => Self::Shape,
            _ => Self::Other,
        }
    }

    /// A stable name, in snake case.
    ///
    /// ```
    /// use tilewise_audit::dump::FileKind;
    ///
    /// assert_eq!(FileKind::LiveRanges.as_str(), "live_ranges");
    /// assert!(FileKind::ALL.iter().all(|&kind| FileKind::named(kind.as_str()) == Some(kind)));
    /// ```
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Proto => "proto",
            Self::Profile => "profile",
            Self::BufferAssignment => "buffer_assignment",
            Self::Report => "report",
            Self::LiveRanges => "live_ranges",
            Self::MemoryUsage => "memory_usage",
            Self::AssignmentValues => "assignment_values",
            Self::Part => "part",
            Self::Shape => "shape",
            Self::Other => "other",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// The name for such files in [`Selection::left`].
    const fn in_words(self) -> &'static str {
        match self {
            Self::LiveRanges => "live ranges",
            Self::MemoryUsage => "memory-usage reports",
            Self::AssignmentValues => "values of assignments",
            // Compilers dump no such files.
            _ => "other files",
        }
    }
}

/// The selected files of a dump, as indices into the files passed to [`select`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// The final programs, by folder and name.
    pub programs: Vec<Selected>,
    /// Why the others are left, in words, with their number; sorted. Plans aren't among them: only their content
    /// matters.
    pub left: Vec<(&'static str, usize)>,
}

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selected {
    /// The program, or a profile of several; the compiler's plan, if the dump lacks the program.
    pub file: usize,
    /// Files that may have the compiler's plan of it, the likeliest first: take the first that [is its
    /// plan](is_plan_of).
    pub plans: Vec<usize>,
}

/// Selects a dump's final programs with their possible plans; each file is a path and its kind.
///
/// ```
/// use tilewise_audit::dump::{FileKind, select};
///
/// let selection = select(&[
///     ("d/module_0007.jit_f.before_optimizations.txt", FileKind::Program),
///     ("d/module_0007.jit_f.cl_1.after_optimizations-buffer-assignment.txt", FileKind::BufferAssignment),
///     ("d/module_0007.jit_f.cl_1.after_optimizations.txt", FileKind::Program),
/// ]);
/// assert_eq!((selection.programs[0].file, selection.programs[0].plans.as_slice()), (2, [1].as_slice()));
/// assert_eq!(selection.left, [("other stages of programs", 1)]);
/// ```
#[must_use]
pub fn select<P: AsRef<str>>(files: &[(P, FileKind)]) -> Selection {
    let mut selection = Selection::default();
    let mut members = Vec::new();
    for (file, (path, kind)) in files.iter().enumerate() {
        match kind {
            _ if path.as_ref().contains(WRAPPER) => selection.leave(OTHER_STAGES),
            FileKind::Program | FileKind::Proto | FileKind::BufferAssignment => {
                members.push(Member::new(file, path.as_ref(), *kind));
            }
            FileKind::Profile => selection.programs.push(Selected { file, plans: Vec::new() }),
            _ => selection.leave(kind.in_words()),
        }
    }
    members.sort_unstable_by(Member::cmp);
    for family in members.chunk_by(|one, other| (one.folder, one.family) == (other.folder, other.family)) {
        let (programs, assignments) = family.split_at(family.partition_point(|member| !member.is_assignment()));
        let Some((program, others)) = programs.split_first() else {
            let alone = |member: &Member<'_>| Selected { file: member.file, plans: Vec::new() };
            selection.programs.extend(assignments.iter().map(alone));
            continue;
        };
        let is_same = |other: &&Member<'_>| other.stage == program.stage;
        for other in others {
            selection.leave(if is_same(&other) { "the same programs again" } else { OTHER_STAGES });
        }
        let same = assignments.iter().filter(is_same);
        let plans = same.chain(assignments.iter().filter(|other| !is_same(other)));
        let protos = others.iter().filter(|other| is_same(other) && other.kind == FileKind::Proto);
        let plans = plans.chain(protos).map(|member| member.file).collect();
        selection.programs.push(Selected { file: program.file, plans });
    }
    selection
}

impl Selection {
    fn leave(&mut self, what: &'static str) {
        match self.left.binary_search_by(|(other, _)| other.cmp(&what)) {
            Ok(at) => self.left[at].1 += 1,
            Err(at) => self.left.insert(at, (what, 1)),
        }
    }
}

/// A file of a program, by its name.
struct Member<'a> {
    file: usize,
    kind: FileKind,
    folder: &'a str,
    name: &'a str,
    /// The part of the name that all files of one program share.
    family: &'a str,
    /// The compilation stage, at the end of the name.
    stage: &'a str,
}

impl<'a> Member<'a> {
    fn new(file: usize, path: &'a str, kind: FileKind) -> Self {
        let (folder, name) = path.rsplit_once(is_separator).unwrap_or(("", path));
        let mut stem = name;
        while let Some(shorter) = [".gz", ".pb", ".hlo", ".txt"].iter().find_map(|end| stem.strip_suffix(end)) {
            stem = shorter;
        }
        let stem = stem.strip_suffix("-buffer-assignment").unwrap_or(stem);
        let (family, stage) = family_and_stage(stem).unwrap_or((stem, ""));
        Self { file, kind, folder, name, family, stage }
    }

    fn is_assignment(&self) -> bool {
        self.kind == FileKind::BufferAssignment
    }

    /// Orders by folder and family; in a family programs before plans, the most final stage first; in a stage the text
    /// before its proto, which lacks the number of partitions.
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |member: &Self| {
            let rank = if member.is_assignment() { 0 } else { rank(member.stage) };
            (member.is_assignment(), rank, member.kind)
        };
        let folders = self.folder.split(is_separator).cmp(other.folder.split(is_separator));
        folders
            .then_with(|| self.family.cmp(other.family))
            .then_with(|| order(self).cmp(&order(other)))
            .then_with(|| self.name.cmp(other.name))
    }
}

/// Splits XLA's names (`module_`, a number, the module's name, its compiler, the stage) into family and stage.
fn family_and_stage(stem: &str) -> Option<(&str, &str)> {
    let (module, rest) = stem.split_once('.').filter(|(module, _)| module.starts_with("module_"))?;
    let (name, rest) = rest.split_once('.')?;
    Some((stem.get(..module.len() + 1 + name.len())?, rest.rsplit('.').next()?))
}

/// Part of the file names of computations that a host program runs asynchronously: they are compiled within it.
const WRAPPER: &str = "hlo_device_type_async_wrapper";

const OTHER_STAGES: &str = "other stages of programs";

/// The stages of a dump at which a program is final, the best first.
const FINAL: [&str; 4] = [
    "after_optimizations",
    "after_codegen",
    "after_optimizations_after_buffer_assignment",
    "after_optimizations_before_buffer_assignment",
];

/// The rank of a stage, 0 for the most final. On a GPU its name begins with the target:
/// `sm_8.0_gpu_after_optimizations`.
fn rank(stage: &str) -> usize {
    let is_stage =
        |last: &str| stage.strip_suffix(last).is_some_and(|before| before.is_empty() || before.ends_with('_'));
    FINAL.iter().position(|last| is_stage(last)).unwrap_or(if stage.starts_with("before") { 9 } else { FINAL.len() })
}

/// The compiler's plan in a file, as text or with a program's proto.
///
/// # Errors
/// Those of [`BufferAssignment::parse`].
pub fn plan_in(document: Document) -> Result<Option<BufferAssignment>, Failure> {
    if !BufferAssignment::is_text(&document.text) {
        return Ok(document.buffer_assignment);
    }
    Ok(Some(BufferAssignment::parse(&document.text)?))
}

/// Whether a plan is of a program: the program has all instructions that the plan names.
///
/// ```
/// use tilewise_audit::dump::is_plan_of;
/// use tilewise_hlo::{BufferAssignment, Module};
///
/// let plan = "BufferAssignment:\nallocation 0: size 512, page 0, preallocated-temp:\n \
///             value: <1 a @0> (size=512,offset=0): f32[8]{0:T(128)}\n";
/// let plan = BufferAssignment::parse(plan)?;
/// let program = |name| Module::parse(format!("ENTRY e {{ {name} = f32[8]{{0:T(128)}} parameter(0) }}"));
/// assert!(is_plan_of(&plan, &program("a")?) && !is_plan_of(&plan, &program("b")?));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[must_use]
pub fn is_plan_of(plan: &BufferAssignment, program: &Module) -> bool {
    let names: HashSet<&str> = program.instructions().map(|instruction| instruction.name()).collect();
    let mut values = plan.allocations().iter().flat_map(|allocation| &allocation.values);
    values.all(|value| names.contains(value.instruction.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{FileKind::*, *};

    /// The selected files with their plans, and the files left.
    fn selected(names: &[(&str, FileKind)]) -> (Vec<String>, Vec<(&'static str, usize)>) {
        let selection = select(names);
        let name = |at: usize| names[at].0;
        let taken = selection.programs.iter().map(|Selected { file, plans }| {
            plans.iter().fold(name(*file).to_owned(), |taken, &plan| format!("{taken} + {}", name(plan)))
        });
        (taken.collect(), selection.left)
    }

    #[test]
    fn what_is_taken_of_a_dump() {
        type Case<'a> = (&'a [(&'a str, FileKind)], &'a [&'a str], &'a [(&'a str, usize)]);
        let again = "the same programs again";
        let stages = "other stages of programs";
        let cases: &[Case<'_>] = &[
            // A TPU's dump: the text before its proto, which may have the plan, too.
            (
                &[
                    ("d/module_0054.jit_f.cl_1.after_optimizations-buffer-assignment-values.txt", AssignmentValues),
                    ("d/module_0054.jit_f.cl_1.after_optimizations-buffer-assignment.txt", BufferAssignment),
                    ("d/module_0054.jit_f.cl_1.after_optimizations-live-range.txt", LiveRanges),
                    ("d/module_0054.jit_f.cl_1.after_optimizations-memory-usage-report.pb", MemoryUsage),
                    ("d/module_0054.jit_f.cl_1.after_optimizations-memory-usage-report.txt", MemoryUsage),
                    ("d/module_0054.jit_f.cl_1.after_optimizations.hlo.pb", Proto),
                    ("d/module_0054.jit_f.cl_1.after_optimizations.txt", Program),
                    ("d/module_0054.jit_f.cl_1.before_optimizations.txt", Program),
                ],
                &["d/module_0054.jit_f.cl_1.after_optimizations.txt \
                   + d/module_0054.jit_f.cl_1.after_optimizations-buffer-assignment.txt \
                   + d/module_0054.jit_f.cl_1.after_optimizations.hlo.pb"],
                &[
                    ("live ranges", 1),
                    ("memory-usage reports", 2),
                    (stages, 1),
                    (again, 1),
                    ("values of assignments", 1),
                ],
            ),
            // The most final stage first, in any order of names; the plan of that stage first.
            (
                &[
                    ("module_1.f.x.after_codegen-buffer-assignment.txt", BufferAssignment),
                    ("module_1.f.x.after_codegen.txt", Program),
                    ("module_1.f.x.after_optimizations-buffer-assignment.txt.gz", BufferAssignment),
                    ("module_1.f.x.after_optimizations.hlo.pb.gz", Proto),
                    ("module_1.f.x.after_optimizations_before_buffer_assignment.txt", Program),
                ],
                &["module_1.f.x.after_optimizations.hlo.pb.gz \
                   + module_1.f.x.after_optimizations-buffer-assignment.txt.gz \
                   + module_1.f.x.after_codegen-buffer-assignment.txt"],
                &[(stages, 2)],
            ),
            // An unknown stage is better than one before optimizations.
            (
                &[("module_1.f.before_optimizations.txt", Program), ("module_1.f.0003.layout.txt", Program)],
                &["module_1.f.0003.layout.txt"],
                &[(stages, 1)],
            ),
            (
                &[
                    ("module_1.f.sm_8.0_gpu_after_optimizations.txt", Program),
                    ("module_1.f.thunk_sequence.txt", Other),
                    ("module_1.f.before_optimizations.txt", Program),
                ],
                &["module_1.f.sm_8.0_gpu_after_optimizations.txt"],
                &[("other files", 1), (stages, 1)],
            ),
            // User-chosen names sort folders before their subfolders; one name in two folders is two programs.
            (
                &[
                    ("d-e/m.hlo", Program),
                    ("d/e/m.hlo", Program),
                    ("d/m.hlo", Program),
                    ("d/m-buffer-assignment.txt", BufferAssignment),
                    ("d/m.txt.gz", Program),
                ],
                &["d/m.hlo + d/m-buffer-assignment.txt", "d/e/m.hlo", "d-e/m.hlo"],
                &[(again, 1)],
            ),
            // Plans are selected if there are no programs.
            (
                &[("b-buffer-assignment.txt", BufferAssignment), ("a.txt", BufferAssignment), ("c.json", Report)],
                &["a.txt", "b-buffer-assignment.txt"],
                &[("other files", 1)],
            ),
            (&[("README", Shape), ("part", Part), ("x", Other)], &[], &[("other files", 3)]),
            (&[("module_.", Program), ("", Proto), (".gz", Program)], &[".gz + ", "module_."], &[(again, 1)]),
        ];
        for (files, taken, left) in cases {
            let (found, others) = selected(files);
            assert_eq!(found, *taken, "{files:?}");
            assert_eq!(others, *left, "{files:?}");
            let reversed: Vec<_> = files.iter().rev().copied().collect();
            assert_eq!(selected(&reversed), (found, others), "the order of files doesn't matter");
        }
    }

    #[test]
    fn kinds_by_content() {
        for (head, kind) in [
            ("\u{feff}\n  HloModule m\n", Program),
            ("// a comment\nHloModule m\n", Program),
            (" BufferAssignment:\nallocation 0: size 8\n", BufferAssignment),
            ("{\"schema\":1,\"input\":\"m.hlo\",\"program\":\"HloModule m\\nENTRY e\"}", Report),
            ("HloLiveRange (max 5):\n", LiveRanges),
            ("Total bytes used: 8\n", AssignmentValues),
            ("cumulative_size; total_size - cumulative_size; used_by_n_values;\n", MemoryUsage),
            ("%fused { }\nENTRY main {\n", Part),
            ("f32[8,128]{1,0:T(8,128)}\n", Shape),
            ("", Other),
            ("one\ntwo\nthree [3]\n", Other),
        ] {
            assert_eq!(FileKind::of(head.as_bytes()), kind, "{head:?}");
        }
        assert_eq!(FileKind::of(&[0, 1, 2, 255, 254, 9, 9, 9]), Other);
    }
}
