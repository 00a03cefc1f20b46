//! An instruction, read from its ranges on demand.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::ptr;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use tilewise::Shape;

use crate::alias::OperandAlias;
use crate::attributes::{Attributes, Metadata, unescape};
use crate::error::Error;
use crate::opcode::Opcode;
use crate::record::{Data, InstructionRecord};
use crate::scan::trim;
use crate::steps;

/// An instruction of a [`Module`](crate::Module): `[ROOT] name = shape opcode(operands), attributes`.
///
/// ```
/// use tilewise_hlo::{Module, Opcode};
///
/// let module = Module::parse(
///     "%fusion.3 = bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)} \
///      fusion(bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)} %fusion.32), kind=kCustom, calls=%all-reduce-scatter.3",
/// )?;
/// let fusion = module.instructions().next().unwrap();
/// assert_eq!((fusion.name(), fusion.opcode()), ("fusion.3", Opcode::Fusion));
/// assert_eq!(fusion.attribute("kind"), Some("kCustom"));
/// assert_eq!(fusion.calls().next().unwrap().name, "all-reduce-scatter.3");
///
/// let operand = fusion.operands().next().unwrap();
/// assert_eq!(operand.name(), "fusion.32");
/// assert_eq!(operand.shape_text(), Some("bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)}"));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Instruction<'m> {
    pub(crate) data: &'m Data,
    pub(crate) index: usize,
}

impl<'m> Instruction<'m> {
    pub(crate) fn record(&self) -> &'m InstructionRecord {
        steps::take(1);
        &self.data.instructions[self.index]
    }

    /// Its name, without `%`.
    #[must_use]
    pub fn name(&self) -> &'m str {
        self.data.text(self.record().name)
    }

    /// Its place among the module's instructions, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether it is marked `ROOT`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.record().is_root
    }

    /// The opcode.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        self.record().opcode
    }

    /// The opcode as written: `fusion`, `slice-start`, …
    #[must_use]
    pub fn opcode_text(&self) -> &'m str {
        self.data.text(self.record().opcode_text)
    }

    /// The opcode that an asynchronous instruction wraps whose computation the text leaves out: a `slice` for
    /// `slice-start`. `None` for all others, an `async-start` with its `calls` among them.
    ///
    /// ```
    /// # use tilewise_hlo::{Module, Opcode};
    /// let module = Module::parse("s = ((f32[8]), f32[2], s32[]) slice-start(x), slice={[0:2]}")?;
    /// let start = module.instructions().next().unwrap();
    /// assert_eq!((start.opcode(), start.wrapped_opcode()), (Opcode::AsyncStart, Some(Opcode::Slice)));
    /// assert_eq!(start.opcode_text(), "slice-start");
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn wrapped_opcode(&self) -> Option<Opcode> {
        self.opcode().is_async().then(|| crate::opcode::wrapped(self.opcode_text())).flatten()
    }

    /// The text of its result's shape.
    #[must_use]
    pub fn shape_text(&self) -> &'m str {
        let text = self.data.text(self.record().shape);
        steps::take(text.len());
        text
    }

    /// The shape of its result. A layout that isn't written stays absent, except in a module without tiles, where XLA's
    /// default layout [stands in](crate::Module::leaves_layouts_out).
    ///
    /// # Errors
    ///
    /// Those of [`Shape::parse_as_written`]; spans count from the start of [`shape_text`](Self::shape_text).
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("t = (f32[2]{0}, /*index=1*/s32[]) tuple(a, b)")?;
    /// let shape = module.instructions().next().unwrap().shape().unwrap();
    /// assert_eq!(shape.to_string(), "(f32[2]{0}, s32[])");
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn shape(&self) -> Result<Shape, tilewise::Error> {
        let text = self.shape_text();
        if self.data.has_tiles() { Shape::parse_as_written(text) } else { text.parse() }
    }

    /// Whether a TPU's compiler may have left the tiles out of this array of its result: for some convolutions, copies
    /// of their results, and a fusion's results in VMEM. Observed: libtpu 0.0.51 and 0.0.52, in programs whose totals
    /// are those of the printed layouts.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("c = f32[192,512]{0,1} convolution(a, b), dim_labels=bf_io->bf\nd = f32[192,512]{0,1} copy(c)")?;
    /// assert!(module.instructions().all(|instruction| instruction.may_lack_tiles(&instruction.shape().unwrap())));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn may_lack_tiles(&self, array: &Shape) -> bool {
        const VMEM: u8 = 1;
        let is_in_vmem = array.as_array().is_some_and(|array| array.memory_space() == VMEM);
        self.opcode() == Opcode::Fusion && is_in_vmem || self.is_of_convolution()
    }

    /// Whether it is a convolution, a fusion that ends in one, or a copy of the result of either.
    fn is_of_convolution(&self) -> bool {
        /// Maximum number of steps from the end of a copy to its source.
        const STEPS: usize = 4;
        let mut at = *self;
        for _ in 0..STEPS {
            let next = match at.opcode() {
                Opcode::Convolution => return true,
                Opcode::Fusion => {
                    let root = at.calls().find_map(|call| call.computation()?.root());
                    return root.is_some_and(|root| root.opcode() == Opcode::Convolution);
                }
                Opcode::Copy | Opcode::CopyStart | Opcode::CopyDone => at.operands().next(),
                _ => return false,
            };
            let Some(next) = next.and_then(|operand| operand.instruction()) else { return false };
            at = next;
        }
        false
    }

    /// The text between the parentheses: operands, a constant's literal, a parameter's number.
    #[must_use]
    pub fn operands_text(&self) -> &'m str {
        self.data.text(self.record().operands)
    }

    /// The number of this parameter of the computation, from 0; `None` if it isn't a parameter.
    #[must_use]
    pub fn parameter_number(&self) -> Option<usize> {
        if self.opcode() == Opcode::Parameter { trim(self.operands_text()).parse().ok() } else { None }
    }

    /// The text after the operands, from the comma on.
    #[must_use]
    pub fn attributes_text(&self) -> &'m str {
        let text = self.data.text(self.record().attributes).trim();
        steps::take(text.len());
        text
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'m> {
        Attributes::of(self.data, self.index)
    }

    /// The text of one attribute's value, with its brackets or quotes (see [`unquote`](crate::unquote)).
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'m str> {
        self.attributes().get(name)
    }

    /// Its metadata; see [`source`](Self::source) for file and line.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'m>> {
        self.attribute("metadata").map(Metadata::new)
    }

    /// The parts of its result that share an operand's buffer (`output_to_operand_aliasing`); empty without the
    /// attribute.
    ///
    /// # Errors
    ///
    /// [`Syntax`](crate::ErrorKind::Syntax) if the attribute isn't written as XLA does
    /// (`HloParserImpl::ParseInstructionOutputOperandAliasing` in xla/hlo/parser/hlo_parser.cc).
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("f = f32[2] fusion(a), output_to_operand_aliasing={{}: (0, {1})}, calls=c")?;
    /// let aliases = module.instructions().next().unwrap().output_to_operand_aliasing()?;
    /// assert!(aliases[0].output_index.is_empty());
    /// assert_eq!((aliases[0].operand_number, &aliases[0].operand_index[..]), (0, &[1][..]));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn output_to_operand_aliasing(&self) -> Result<Vec<OperandAlias>, Error> {
        const NAME: &str = "output_to_operand_aliasing";
        // Few have it, and attributes are long: searching for the word first is cheap.
        static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NAME));
        let may_have = FINDER.find(self.attributes_text().as_bytes()).is_some();
        match may_have.then(|| self.attribute(NAME)).flatten() {
            Some(text) => crate::alias::operand_aliases(text, self.data.offset_of(text)),
            None => Ok(Vec::new()),
        }
    }

    /// The source line it comes from: the innermost of its [`frames`](Self::frames), or the file and line of its
    /// metadata in texts without tables.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("x = f32[] add(a, b), metadata={source_file=\"m.py\" source_line=12}")?;
    /// let source = module.instructions().next().unwrap().source().unwrap();
    /// assert_eq!((&*source.file, source.line), ("m.py", 12));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn source(&self) -> Option<SourceLocation<'m>> {
        self.frames().next().or_else(|| {
            let metadata = self.metadata()?;
            let line = metadata.source_line().unwrap_or_default();
            Some(SourceLocation { file: metadata.source_file()?, line, function: None })
        })
    }

    /// The source lines that led to it, the innermost first, from the module's tables.
    ///
    /// A `parent_frame_id` of 1 means "no parent" and one of `n` frame `n - 1`, since XLA prints it one higher than
    /// it is in the `StackFrameIndexProto`. Parents that run in a circle end the iteration.
    #[must_use]
    pub fn frames(&self) -> Frames<'m> {
        let next = self.metadata().and_then(|metadata| metadata.stack_frame_id()).unwrap_or_default();
        Frames { data: self.data, next, left: self.data.table.frame_count() }
    }

    /// The bytes of the source it takes: from its name to the end of its attributes. An element that an operand names, `p#1`,
    /// has those of its first reader, in which it stands.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        let is_written = |record: &&InstructionRecord| (record.opcode_text.start as usize) < self.data.length;
        let written = self.data.instructions.get(self.index()..).unwrap_or_default().iter().find(is_written);
        let Some(record) = written else { return 0..0 };
        // An operand that is an instruction has a name that the text leaves out, and perhaps no shape.
        let parts = [record.name, record.shape, record.opcode_text];
        let start = parts.into_iter().map(|part| part.start as usize).find(|start| *start < self.data.length);
        start.unwrap_or_default()..record.attributes.end as usize
    }
}

impl fmt::Debug for Instruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instruction({} = {} {})", self.name(), self.shape_text(), self.opcode_text())
    }
}

impl PartialEq for Instruction<'_> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.data, other.data) && self.index == other.index
    }
}

impl Eq for Instruction<'_> {}

/// A line of the program that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation<'m> {
    /// The file's name, as the compiler was given it.
    pub file: Cow<'m, str>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The function around it, if known.
    pub function: Option<Cow<'m, str>>,
}

/// Iterates over the source lines that led to an instruction, the innermost first.
#[derive(Clone)]
pub struct Frames<'m> {
    data: &'m Data,
    next: u32,
    left: usize,
}

impl<'m> Iterator for Frames<'m> {
    type Item = SourceLocation<'m>;

    fn next(&mut self) -> Option<SourceLocation<'m>> {
        self.left = self.left.checked_sub(1)?;
        let data = self.data;
        let frame = data.table.frame(self.next)?;
        let location = data.table.location(frame.location)?;
        self.next = if frame.parent == self.next { 0 } else { frame.parent };
        Some(SourceLocation {
            file: unescape(data.text(data.table.file(location)?)),
            line: location.line,
            function: data.table.function(location).map(|span| unescape(data.text(span))),
        })
    }
}
