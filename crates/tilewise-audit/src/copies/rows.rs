//! Copies: data movement without computation.

use crate::program::{Sizer, SourceLine, op_name, share, source_line};
use foldhash::HashMap;
use std::{borrow::Cow, cmp::Reverse};
use tilewise::{ErrorKind, Shape, ShapeKind, Tiled};
use tilewise_hlo::{Instruction, Module, Opcode, dataflow::Dataflow};

/// One instruction that copies an array: a `copy`, a `copy-start`, or a `slice-start` of the whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyRow {
    /// The instruction, without `%`.
    pub instruction: String,
    /// The computation it is in, without `%`.
    pub computation: String,
    /// The array that is read.
    pub from: Shape,
    /// The array that is written.
    pub to: Shape,
    /// Its class.
    pub class: CopyClass,
    /// Bytes that `from` takes.
    pub read_bytes: u64,
    /// Bytes that `to` takes.
    pub written_bytes: u64,
    /// Number of runs: the product of the [trip counts](Dataflow::trip_count) of the loops around it. `None` if one of
    /// them is unknown.
    pub trips: Option<u64>,
    /// Bytes read and written in all its runs; in one run if [`trips`](Self::trips) is unknown.
    pub moved_bytes: u64,
    /// The framework's name of the operation.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
    /// The index of the instruction.
    pub(crate) index: usize,
}

/// The purpose of a copy: how the array it writes differs from the one it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CopyClass {
    /// The elements lie in another order, or have another type. The memory space may differ, too.
    Relayout,
    /// A copy of the same bytes to another memory space.
    Transfer,
    /// A copy with the same layout in the same memory space.
    Duplicate,
    /// Layouts that are written differently, but put every element at the same place: a `bitcast` would do.
    Bitcast,
}

impl CopyClass {
    /// Its name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Relayout => "relayout",
            Self::Transfer => "transfer",
            Self::Duplicate => "duplicate",
            Self::Bitcast => "bitcast",
        }
    }

    /// The class of a copy between two arrays; `None` if one of them isn't an array, or can't be laid out.
    ///
    /// ```
    /// use tilewise_audit::CopyClass;
    ///
    /// let class = |from: &str, to: &str| CopyClass::of(&from.parse().unwrap(), &to.parse().unwrap());
    /// assert_eq!(class("f32[64,128]{1,0:T(8,128)}", "f32[64,128]{0,1:T(8,128)}"), Some(CopyClass::Relayout));
    /// assert_eq!(class("f32[64,128]{1,0:T(8,128)}", "f32[64,128]{1,0:T(8,128)S(1)}"), Some(CopyClass::Transfer));
    /// // Rows of 128 lanes follow one another in either layout.
    /// assert_eq!(class("f32[64,128]{1,0:T(8,128)}", "f32[64,128]{1,0:T(4,128)}"), Some(CopyClass::Bitcast));
    /// ```
    #[must_use]
    pub fn of(from: &Shape, to: &Shape) -> Option<Self> {
        let same_type = from.as_array()?.element_type() == to.as_array()?.element_type();
        // Undecidable layouts (tiles that cut across one another) are the same only if written the same.
        let same_bytes = match from.same_bytes(to) {
            Ok(same_bytes) => same_type && same_bytes,
            Err(error) if error.kind() == ErrorKind::Undecided => same_type && from == to,
            Err(_) => return None,
        };
        let [first, second] = [from.layout()?, to.layout()?];
        let same_layout = first.minor_to_major() == second.minor_to_major() && first.tiles() == second.tiles();
        Some(match (same_bytes, first.memory_space() == second.memory_space()) {
            (false, _) => Self::Relayout,
            (true, false) => Self::Transfer,
            (true, true) if same_layout => Self::Duplicate,
            (true, true) => Self::Bitcast,
        })
    }
}

/// Copies of one class that come from one line of the user's program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyLine {
    /// The line; `None` for copies to which the compiler gives no line.
    pub source: Option<SourceLine>,
    /// Their class.
    pub class: CopyClass,
    /// The instruction among them that moves the most bytes, without `%`.
    pub instruction: String,
    /// Number of instructions.
    pub copies: usize,
    /// Bytes they read and write.
    pub moved_bytes: u64,
    /// Whether some of them are in loops of unknown trip count: these are counted once, though they move more.
    pub is_lower_bound: bool,
    /// [`moved_bytes`](Self::moved_bytes) as a fraction of all bytes that the program moves, 0 … 1.
    pub share: f64,
}

/// Copies by line and class, most bytes first, without those that move at most a hundredth of `moved` bytes.
///
/// ```
/// let module = tilewise_hlo::Module::parse("
/// ENTRY main {
///   x = f32[256,512]{1,0:T(8,128)} parameter(0)
///   ROOT y = f32[256,512]{0,1:T(8,128)} copy(x), metadata={source_file=\"m.py\" source_line=3}
/// }")?;
/// let report = tilewise_audit::audit(&module);
/// let lines = tilewise_audit::copies_by_line(&report.copies, report.moved_bytes());
/// assert_eq!((lines[0].class.as_str(), lines[0].moved_bytes, lines[0].share), ("relayout", 1 << 20, 1.0));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[must_use]
pub fn copies_by_line(copies: &[CopyRow], moved: u64) -> Vec<CopyLine> {
    let mut lines: Vec<CopyLine> = Vec::new();
    let mut known: HashMap<(Option<&SourceLine>, CopyClass), (usize, u64)> = HashMap::default();
    for copy in copies {
        let (at, largest) = known.entry((copy.source.as_ref(), copy.class)).or_insert((lines.len(), 0));
        if *at == lines.len() {
            lines.push(CopyLine {
                source: copy.source.clone(),
                class: copy.class,
                instruction: String::new(),
                copies: 0,
                moved_bytes: 0,
                is_lower_bound: false,
                share: 0.0,
            });
        }
        let Some(line) = lines.get_mut(*at) else { continue };
        if line.copies == 0 || copy.moved_bytes > *largest {
            *largest = copy.moved_bytes;
            line.instruction.clone_from(&copy.instruction);
        }
        line.copies += 1;
        line.moved_bytes = line.moved_bytes.saturating_add(copy.moved_bytes);
        line.is_lower_bound |= copy.trips.is_none();
    }
    lines.retain(|line| line.moved_bytes > moved / 100);
    for line in &mut lines {
        line.share = share(line.moved_bytes, moved);
    }
    lines.sort_by_cached_key(|line| Reverse(line.moved_bytes));
    lines
}

/// Bytes that the program moves: see [`Report::moved_bytes`](crate::Report::moved_bytes).
pub(crate) fn moved_bytes(flow: &Dataflow) -> u64 {
    let mut bytes = Bytes::default();
    let mut moved = 0u64;
    for computation in flow.module().computations().filter(|computation| computation.owns_buffers()) {
        let once = computation.instructions().map(|instruction| bytes.moved(&instruction));
        let once = once.fold(0, u64::saturating_add);
        let trips = flow.body(&computation).and_then(|body| flow.executions(body)).unwrap_or(1);
        moved = moved.saturating_add(once.saturating_mul(trips));
    }
    moved
}

/// Every copy in computations that own buffers, in the order of the text.
pub(crate) fn copies<'m>(module: &'m Module, flow: &Dataflow, sizer: &mut Sizer<'m>) -> Vec<CopyRow> {
    let mut pairs = Pairs::default();
    let mut rows = Vec::new();
    for computation in module.computations().filter(|computation| computation.owns_buffers()) {
        let trips = flow.body(&computation).and_then(|body| flow.executions(body));
        rows.extend(computation.instructions().filter_map(|instruction| row(&instruction, trips, &mut pairs, sizer)));
    }
    rows
}

/// Pairs of arrays, cached by their texts: programs repeat a few.
#[derive(Default)]
struct Pairs<'m> {
    known: HashMap<(&'m str, &'m str), Option<Pair>>,
}

#[derive(Clone)]
struct Pair {
    from: Shape,
    to: Shape,
    class: CopyClass,
    read_bytes: u64,
    written_bytes: u64,
}

impl Pair {
    fn new(from: &str, copy: &Instruction<'_>, sizer: &mut Sizer<'_>) -> Option<Self> {
        let result = copy.shape().ok()?;
        let to = match copy.opcode() {
            Opcode::Copy => result,
            Opcode::CopyStart => result.elements().next()?,
            _ => result.elements().nth(1)?,
        };
        let from = Shape::parse_as_written(from).ok()?;
        if from.dimensions() != to.dimensions() {
            return None;
        }
        let (read_bytes, written_bytes) = (sizer.physical_bytes(&from)?, sizer.physical_bytes(&to)?);
        Some(Self { class: CopyClass::of(&from, &to)?, from, to, read_bytes, written_bytes })
    }
}

fn row<'m>(
    copy: &Instruction<'m>,
    trips: Option<u64>,
    pairs: &mut Pairs<'m>,
    sizer: &mut Sizer<'m>,
) -> Option<CopyRow> {
    let is_copy = match copy.opcode() {
        Opcode::Copy | Opcode::CopyStart => true,
        opcode => opcode == Opcode::AsyncStart && copy.wrapped_opcode() == Some(Opcode::Slice),
    };
    if !is_copy {
        return None;
    }
    let operand = copy.operands().next()?;
    let from = match operand.shape_text() {
        Some(text) => text,
        None => operand.instruction()?.shape_text(),
    };
    let pair = pairs.known.entry((from, copy.shape_text())).or_insert_with(|| Pair::new(from, copy, sizer)).clone()?;
    Some(CopyRow {
        index: copy.index(),
        instruction: copy.name().to_owned(),
        computation: copy.computation().name().to_owned(),
        class: pair.class,
        read_bytes: pair.read_bytes,
        written_bytes: pair.written_bytes,
        trips,
        moved_bytes: pair.read_bytes.saturating_add(pair.written_bytes).saturating_mul(trips.unwrap_or(1)),
        op_name: op_name(copy).map(Cow::into_owned),
        source: source_line(copy),
        from: pair.from,
        to: pair.to,
    })
}

/// Sizes in bytes, cached: of shapes by text, of results by instruction, since a wide tuple has many readers.
#[derive(Default)]
struct Bytes<'m> {
    known: HashMap<&'m str, u64>,
    results: HashMap<usize, u64>,
}

impl<'m> Bytes<'m> {
    /// Bytes of all arrays in a shape; 0 for arrays that can't be sized.
    fn of(&mut self, text: &'m str) -> u64 {
        *self.known.entry(text).or_insert_with(|| {
            let shape = Shape::parse_as_written(text);
            let leaves = shape.iter().flat_map(Shape::leaves).filter_map(|(_, leaf)| size(&leaf));
            leaves.fold(0, u64::saturating_add)
        })
    }

    /// Bytes of all arrays in an instruction's result.
    fn of_result(&mut self, instruction: &Instruction<'m>) -> u64 {
        if let Some(known) = self.results.get(&instruction.index()) {
            return *known;
        }
        let found = self.of(instruction.shape_text());
        self.results.insert(instruction.index(), found);
        found
    }

    /// Bytes that an instruction reads and writes.
    fn moved(&mut self, instruction: &Instruction<'m>) -> u64 {
        let mut reads = instruction.operands().map(|operand| match (operand.shape_text(), operand.instruction()) {
            (Some(text), _) => self.of(text),
            (None, Some(operand)) => self.of_result(&operand),
            (None, None) => 0,
        });
        match instruction.opcode() {
            Opcode::Parameter
            | Opcode::Constant
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Bitcast
            | Opcode::While
            | Opcode::Conditional
            | Opcode::Call
            | Opcode::OptimizationBarrier
            | Opcode::AddDependency
            | Opcode::Domain
            | Opcode::AfterAll
            | Opcode::AllGatherDone
            | Opcode::AllReduceDone
            | Opcode::CollectivePermuteDone
            | Opcode::CopyDone
            | Opcode::RecvDone
            | Opcode::SendDone
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone => 0,
            // The wrapped computation is in the text, and counted there.
            Opcode::AsyncStart if instruction.wrapped_opcode().is_none() => 0,
            Opcode::DynamicUpdateSlice => reads.nth(1).unwrap_or(0).saturating_mul(2),
            Opcode::Slice | Opcode::DynamicSlice => self.of_result(instruction).saturating_mul(2),
            Opcode::AllGatherStart
            | Opcode::AllReduceStart
            | Opcode::CollectivePermuteStart
            | Opcode::CopyStart
            | Opcode::AsyncStart => {
                let whole = !matches!(instruction.wrapped_opcode(), Some(Opcode::Slice | Opcode::DynamicSlice));
                let read = if whole { reads.fold(0, u64::saturating_add) } else { 0 };
                let made = instruction.buffers().unwrap_or_default();
                let written = made.iter().filter_map(|made| size(&made.shape)).fold(0, u64::saturating_add);
                if whole { read.saturating_add(written) } else { written.saturating_mul(2) }
            }
            _ => {
                let read = reads.fold(0, u64::saturating_add);
                read.saturating_add(self.of_result(instruction))
            }
        }
    }
}

fn size(leaf: &Shape) -> Option<u64> {
    matches!(leaf.kind(), ShapeKind::Array(_)).then(|| Tiled::new(leaf).ok())?.map(|tiled| tiled.sizes().physical_bytes)
}
