//! The contents of a program's memory at every moment of its order, by line of the user's program.

use super::{
    passes,
    peak::PeakRow,
    pieces::{ModuleRow, Pass, StandingRow, TimelinePiece},
    plan_row::{PlanPiece, PlanRow},
    sections::Report,
    time::MomentTime,
};
use crate::program::{SourceLine, Tracer, family, module_path, tree, without_numbers};
use foldhash::HashMap;
use std::hash::Hash;
use tilewise::tpu::memory_space_name;
use tilewise_hlo::{Instruction, dataflow::Dataflow};
use tilewise_memory::Role;

/// The contents of one memory space over a program's order, for a picture or a page.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Timeline {
    /// The memory space's number.
    pub memory_space: u8,
    /// Its name, such as `HBM`.
    pub memory_space_name: String,
    /// Bytes that are live for the whole program: arguments, and results that don't lie in them.
    pub resident_bytes: u64,
    /// The parts of these bytes, the largest first.
    pub residents: Vec<Resident>,
    /// The moment of the peak.
    pub peak_moment: Option<usize>,
    /// The name of the instruction that runs at each moment.
    pub order: Vec<String>,
    /// For each instruction in `order`, the index in [`owners`](Self::owners).
    pub order_owners: Vec<usize>,
    /// Lines of the user's program; if unknown, the framework's name of the operation.
    pub owners: Vec<OwnerName>,
    /// The framework's names of operations, such as `jit(step)/jvp(Model)/layer_3/dot_general`, each once.
    pub paths: Vec<String>,
    /// For each of `paths`, the module of the network, such as `Model/layer_3`, or an argument's subtree; empty if it
    /// has none.
    pub modules: Vec<String>,
    /// For each instruction in `order`, the index in [`paths`](Self::paths).
    pub order_paths: Vec<Option<usize>>,
    /// Layers of a network that repeat, such as `Model/layer_3`, by number; empty if operations' names have no numbers.
    pub layers: Vec<String>,
    /// The passes of a training step, in their order; empty for other programs.
    pub passes: Vec<Pass>,
    /// The texts of the shapes in memory, each once.
    pub shapes: Vec<String>,
    /// The pieces of temporaries' memory, from [`Report::pieces`].
    pub pieces: Vec<TimelinePiece>,
    /// Arrays that are live for the whole program, the largest first.
    pub standing: Vec<StandingRow>,
    /// Names of equal arguments that differ only in numbers: `ws[i]`.
    pub families: Vec<String>,
    /// The time of each moment, from [`Report::moment_times`].
    pub times: Vec<MomentTime>,
}

/// Arrays that are live for the whole program: the arguments of one tree, or all results or constants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resident {
    /// The tree of the arguments, such as `params`, `mu` or `batch`; or `results`, `constants`.
    pub name: String,
    /// Number of arrays.
    pub count: usize,
    /// Bytes they take.
    pub bytes: u64,
    /// Bytes of padding in them.
    pub padding_bytes: u64,
}

/// The owner of a value in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OwnerName {
    /// A line of the user's program.
    Line(SourceLine),
    /// The framework's name of an operation without a line, or an argument's.
    Operation(String),
    /// Unknown.
    Unknown,
}

/// Lines of the user's program, numbered in order of appearance.
#[derive(Clone, Debug, Default)]
pub struct Owners<'a> {
    numbered: Numbered<OwnerName>,
    paths: Numbered<String>,
    /// Numbers of line and name by the text of metadata that has a line: instructions share a few.
    of_metadata: HashMap<&'a str, (usize, Option<usize>)>,
    tracer: Tracer,
}

#[derive(Clone, Debug)]
struct Numbered<T> {
    labels: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { labels: Vec::new(), numbers: HashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, label: T) -> usize {
        *self.numbers.entry(label).or_insert_with_key(|label| {
            self.labels.push(label.clone());
            self.labels.len() - 1
        })
    }
}

impl<'a> Owners<'a> {
    /// The number of the line that a value belongs to.
    pub fn of(&mut self, row: &PlanRow<'a>) -> usize {
        self.origin(row.flow, &row.instruction).0
    }

    /// The names, by number.
    #[must_use]
    pub fn into_names(self) -> Vec<OwnerName> {
        self.numbered.labels
    }

    /// The numbers of an instruction's line and of its name.
    fn origin(&mut self, flow: &Dataflow, instruction: &Instruction<'a>) -> (usize, Option<usize>) {
        let metadata = instruction.attribute("metadata").unwrap_or_default();
        if let Some(known) = self.of_metadata.get(metadata) {
            return *known;
        }
        let (name, source) = self.tracer.traced(flow, instruction);
        let path = name.clone().map(|name| self.paths.number(name));
        let owner = self.numbered.number(match source {
            Some(source) => OwnerName::Line(source),
            None => name.map_or(OwnerName::Unknown, OwnerName::Operation),
        });
        // An instruction without a line has that of the one it copies.
        if instruction.source().is_some() {
            self.of_metadata.insert(metadata, (owner, path));
        }
        (owner, path)
    }
}

/// Rows of arrays that are live for the whole run, and families of arguments.
fn standing(
    rows: &[PeakRow],
    owners: &mut Owners<'_>,
    shapes: &mut Numbered<String>,
) -> (Vec<StandingRow>, Vec<String>) {
    let stands: Vec<&PeakRow> = rows.iter().filter(|row| row.role.is_resident()).collect();
    let mut alike: HashMap<(String, String), Vec<usize>> = HashMap::default();
    let mut standing = Vec::new();
    for (at, row) in stands.iter().enumerate() {
        let shape = row.shape.to_string();
        if let (Role::Argument, Some(name)) = (row.role, &row.op_name) {
            alike.entry((shape.clone(), without_numbers(name))).or_default().push(at);
        }
        let owner = match (&row.source, &row.op_name) {
            (Some(source), _) => OwnerName::Line(source.clone()),
            (None, Some(name)) => OwnerName::Operation(name.clone()),
            (None, None) => OwnerName::Operation(row.role.as_str().to_owned()),
        };
        standing.push(StandingRow {
            owner: owners.numbered.number(owner),
            path: row.op_name.clone().map(|name| owners.paths.number(name)),
            shape: shapes.number(shape),
            family: None,
            role: row.role,
            instruction: row.instruction.clone(),
            count: row.count,
            bytes: row.bytes,
            padding_bytes: row.padding_bytes,
        });
    }
    let mut alike: Vec<Vec<usize>> = alike.into_values().filter(|rows| rows.len() > 1).collect();
    alike.sort();
    let names = |rows: &Vec<usize>| {
        let names: Vec<&str> = rows.iter().filter_map(|at| stands[*at].op_name.as_deref()).collect();
        family(&names)
    };
    let families = alike.iter().map(names).collect();
    for (number, rows) in alike.iter().enumerate() {
        for at in rows {
            standing[*at].family = Some(number);
        }
    }
    (standing, families)
}

/// Arrays that are live for the whole run, by tree.
fn residents(rows: &[PeakRow]) -> Vec<Resident> {
    let mut residents: Vec<Resident> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::default();
    for row in rows.iter().filter(|row| row.role.is_resident()) {
        let name = match row.role {
            Role::Argument => row.op_name.as_deref().and_then(tree).unwrap_or("arguments"),
            Role::Output => "results",
            _ => "constants",
        };
        let at = *known.entry(name).or_insert(residents.len());
        if at == residents.len() {
            residents.push(Resident { name: name.to_owned(), count: 0, bytes: 0, padding_bytes: 0 });
        }
        let resident = &mut residents[at];
        resident.count += row.count;
        resident.bytes = resident.bytes.saturating_add(row.bytes);
        resident.padding_bytes = resident.padding_bytes.saturating_add(row.padding_bytes);
    }
    residents.sort_by_key(|resident| std::cmp::Reverse(resident.bytes));
    residents
}

impl Report {
    /// The contents of a memory space over the program's order; `None` without a plan.
    ///
    /// ```
    /// let text = "
    /// HloModule m, is_scheduled=true
    ///
    /// ENTRY main {
    ///   x = f32[8,128]{1,0:T(8,128)} parameter(0)
    ///   y = f32[8,128]{1,0:T(8,128)} negate(x), metadata={source_file=\"model.py\" source_line=7}
    ///   ROOT z = f32[8,128]{1,0:T(8,128)} negate(y)
    /// }";
    /// let module = tilewise_hlo::Module::parse(text)?;
    /// let timeline = tilewise_audit::audit(&module).timeline(0).expect("a plan");
    /// assert_eq!((timeline.resident_bytes, &*timeline.order), (8192, &["x".into(), "y".into(), "z".into()][..]));
    /// let piece = &timeline.pieces[0];
    /// assert_eq!((piece.bytes, piece.first, piece.last), (4096, 1, 2));
    /// let tilewise_audit::OwnerName::Line(line) = &timeline.owners[piece.owner] else { panic!("a line") };
    /// assert_eq!((&*line.file, line.line), ("model.py", 7));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn timeline(&self, memory_space: u8) -> Option<Timeline> {
        let plan = self.plan().ok()?;
        let space = plan.space(memory_space);
        let (mut owners, mut shapes) = (Owners::default(), Numbered::default());
        // Cached: a program repeats a few arrays.
        let mut arrays = HashMap::default();
        let pieces = self.pieces(memory_space).into_iter().map(|PlanPiece { row, offset, first, last }| {
            let (shape, padding_bytes) = *arrays
                .entry((row.value.node(), row.value.bytes))
                .or_insert_with(|| (row.shape().map(|shape| shapes.number(shape.to_string())), row.padding_bytes()));
            let (owner, path) = owners.origin(row.flow, &row.instruction);
            TimelinePiece {
                owner,
                path,
                layer: None,
                shape,
                instruction: row.instruction.name().to_owned(),
                offset,
                bytes: row.value.bytes,
                padding_bytes,
                first,
                last,
            }
        });
        let mut pieces: Vec<TimelinePiece> = pieces.collect();
        let runs = || plan.order().filter_map(|at| self.planned.module.instruction(at));
        let (order, origins): (Vec<_>, Vec<_>) =
            runs().map(|run| (run.name().to_owned(), owners.origin(&self.planned.flow, &run))).unzip();
        let (order_owners, order_paths): (Vec<_>, Vec<_>) = origins.into_iter().unzip();
        let peak = self.memory_space(memory_space).and_then(|total| total.peak.as_ref());
        let rows = peak.map_or(&[][..], |peak| &peak.rows);
        let (standing, families) = standing(rows, &mut owners, &mut shapes);
        let Owners { numbered, paths, .. } = owners;
        let layers = passes::name_layers(&paths.labels, &mut pieces);
        Some(Timeline {
            memory_space,
            memory_space_name: memory_space_name(memory_space).to_uppercase(),
            resident_bytes: space.map_or(0, |space| space.resident_bytes),
            residents: residents(rows),
            peak_moment: space.and_then(|space| space.peak.as_ref()).map(|peak| peak.logical_time),
            passes: passes::of(runs().map(|run| run.metadata()?.op_name())),
            order,
            order_owners,
            owners: numbered.labels,
            modules: paths.labels.iter().map(|path| module_path(path)).collect(),
            paths: paths.labels,
            order_paths,
            layers,
            shapes: shapes.labels,
            pieces,
            standing,
            families,
            times: self.moment_times(),
        })
    }

    /// The arrays alive at the peak of a memory space by module, the largest first; empty without a plan.
    #[must_use]
    pub fn peak_modules(&self, memory_space: u8) -> Vec<ModuleRow> {
        let Some(peak) = self.memory_space(memory_space).and_then(|total| total.peak.as_ref()) else {
            return Vec::new();
        };
        let mut owners = Owners::default();
        let alive = |piece: &PlanPiece<'_>| (piece.first..=piece.last).contains(&peak.moment);
        let pieces = self.pieces(memory_space).into_iter().filter(alive).map(|PlanPiece { row, .. }| {
            let (_, path) = owners.origin(row.flow, &row.instruction);
            (
                path.map_or_else(String::new, |path| module_path(&owners.paths.labels[path])),
                1,
                row.value.bytes,
                row.padding_bytes(),
            )
        });
        let pieces: Vec<_> = pieces.collect();
        let standing = peak.rows.iter().filter(|row| row.role.is_resident()).map(|row| {
            (row.op_name.as_deref().map(module_path).unwrap_or_default(), row.count, row.bytes, row.padding_bytes)
        });
        let mut modules: HashMap<String, ModuleRow> = HashMap::default();
        for (module, count, bytes, padding_bytes) in standing.chain(pieces) {
            let empty = || ModuleRow { module: module.clone(), count: 0, bytes: 0, padding_bytes: 0 };
            let row = modules.entry(module.clone()).or_insert_with(empty);
            row.count += count;
            row.bytes = row.bytes.saturating_add(bytes);
            row.padding_bytes = row.padding_bytes.saturating_add(padding_bytes);
        }
        let mut modules: Vec<ModuleRow> = modules.into_values().collect();
        modules.sort_by(|a, b| (b.bytes, &a.module).cmp(&(a.bytes, &b.module)));
        modules
    }

    /// Bytes alive in a memory space at each moment of the program's order; empty without a plan.
    #[must_use]
    pub fn live_bytes(&self, memory_space: u8) -> Vec<u64> {
        let Ok(plan) = self.plan() else { return Vec::new() };
        // Steps wrap below 0 where more bytes end than begin; their running sums are right again.
        let mut steps = vec![0u64; plan.order().len()];
        for PlanPiece { row, first, last, .. } in self.pieces(memory_space) {
            if let Some(step) = steps.get_mut(first) {
                *step = step.wrapping_add(row.value.bytes);
            }
            if let Some(step) = last.checked_add(1).and_then(|end| steps.get_mut(end)) {
                *step = step.wrapping_sub(row.value.bytes);
            }
        }
        let mut alive = plan.space(memory_space).map_or(0, |space| space.resident_bytes);
        for step in &mut steps {
            alive = alive.wrapping_add(*step);
            *step = alive;
        }
        steps
    }
}
