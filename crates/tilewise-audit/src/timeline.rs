//! What a program holds at every moment of its order, by line of the user's program.

use crate::{PlanPiece, PlanRow, Report, origin::Sayings};
use std::collections::HashMap;
use tilewise_hlo::{Instruction, dataflow::Dataflow};

/// What lies in one memory space over a program's order: what a picture of it, or a page, is made from. With the
/// `serde` feature it serialises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeline {
    /// The memory space's number.
    pub memory_space: u8,
    /// Bytes that are live for the whole program: arguments, and results that don't lie in them.
    pub resident_bytes: u64,
    /// The moment at which the most is held.
    pub peak_moment: Option<usize>,
    /// The name of the instruction that runs at each moment.
    pub order: Vec<String>,
    /// Of that instruction, the number in [`owners`](Self::owners).
    pub order_owners: Vec<usize>,
    /// Lines of the user's program, `model.py:439 f`; where none is known, the framework's name of the operation.
    pub owners: Vec<String>,
    /// The texts of the shapes that lie there, each once.
    pub shapes: Vec<String>,
    /// What temporaries lie in, as [`Report::pieces`] has it.
    pub pieces: Vec<TimelinePiece>,
}

/// Memory in use for a part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelinePiece {
    /// Whose it is, of [`Timeline::owners`].
    pub owner: usize,
    /// What lies there, of [`Timeline::shapes`].
    pub shape: Option<usize>,
    /// The instruction that makes it.
    pub instruction: String,
    /// Bytes from the start of the temporaries' memory, where that is known.
    pub offset: Option<u64>,
    /// Bytes it takes.
    pub bytes: u64,
    /// How many of them hold no data: those of the shape that lies there and of its allocation.
    pub padding_bytes: u64,
    /// The first moment at which it is in use.
    pub first: usize,
    /// The last one.
    pub last: usize,
}

/// Lines of the user's program, numbered as they come.
#[derive(Clone, Debug, Default)]
pub struct Owners<'a> {
    numbered: Numbered,
    /// Of each text of metadata that has a line: instructions share a few.
    of_metadata: HashMap<&'a str, usize>,
    sayings: Sayings,
}

#[derive(Clone, Debug, Default)]
struct Numbered {
    labels: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Numbered {
    fn number(&mut self, label: String) -> usize {
        *self.numbers.entry(label).or_insert_with_key(|label| {
            self.labels.push(label.clone());
            self.labels.len() - 1
        })
    }
}

impl<'a> Owners<'a> {
    /// The number of the line that a value belongs to.
    pub fn of(&mut self, row: &PlanRow<'a>) -> usize {
        self.number(row.flow, &row.instruction)
    }

    /// The labels of the numbers given.
    #[must_use]
    pub fn into_labels(self) -> Vec<String> {
        self.numbered.labels
    }

    fn number(&mut self, flow: &Dataflow, instruction: &Instruction<'a>) -> usize {
        let metadata = instruction.attribute("metadata").unwrap_or_default();
        if let Some(known) = self.of_metadata.get(metadata) {
            return *known;
        }
        let number = self.numbered.number(match self.sayings.traced(flow, instruction) {
            (_, Some(source)) => {
                let function = source.function.map(|function| format!(" {function}")).unwrap_or_default();
                format!("{}:{}{function}", source.file, source.line)
            }
            (name, None) => name.unwrap_or_else(|| "no line".to_owned()),
        });
        // What has no line of its own has that of what it copies.
        if instruction.source().is_some() {
            self.of_metadata.insert(metadata, number);
        }
        number
    }
}

impl Report {
    /// What lies in a memory space over the program's order; `None` without a plan.
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
    /// assert_eq!((&*timeline.owners[piece.owner], piece.bytes, piece.first, piece.last), ("model.py:7", 4096, 1, 2));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn timeline(&self, memory_space: u8) -> Option<Timeline> {
        let plan = self.plan.as_ref().ok()?;
        let space = plan.space(memory_space);
        let (mut owners, mut shapes) = (Owners::default(), Numbered::default());
        // A program repeats a few.
        let mut arrays = HashMap::new();
        let pieces = self.pieces(memory_space).into_iter().map(|PlanPiece { row, offset, first, last }| {
            let (shape, padding_bytes) = *arrays
                .entry((row.value.node(), row.value.bytes))
                .or_insert_with(|| (row.shape().map(|shape| shapes.number(shape.to_string())), row.padding_bytes()));
            TimelinePiece {
                owner: owners.of(&row),
                shape,
                instruction: row.instruction.name().to_owned(),
                offset,
                bytes: row.value.bytes,
                padding_bytes,
                first,
                last,
            }
        });
        let pieces = pieces.collect();
        let order = plan.order().filter_map(|at| self.module.instruction(at));
        let (order, order_owners) = order.map(|run| (run.name().to_owned(), owners.number(&self.flow, &run))).unzip();
        Some(Timeline {
            memory_space,
            resident_bytes: space.map_or(0, |space| space.resident_bytes),
            peak_moment: space.and_then(|space| space.peak.as_ref()).map(|peak| peak.logical_time),
            order,
            order_owners,
            owners: owners.into_labels(),
            shapes: shapes.labels,
            pieces,
        })
    }
}
