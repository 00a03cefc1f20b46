//! An instruction, read from its ranges on demand.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tilewise::Shape;

use crate::alias::OperandAlias;
use crate::attributes::{Attributes, Call, Metadata, unescape};
use crate::error::Error;
use crate::module::{Computation, Module};
use crate::record::InstructionRecord;
use crate::scan::{bare, is_identifier, trim, value_end};

/// An instruction of a [`Module`]: `[ROOT] name = shape opcode(operands), attributes`.
///
/// ```
/// use tilewise_hlo::Module;
///
/// let module = Module::parse(
///     "%fusion.3 = bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)} \
///      fusion(bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)} %fusion.32), kind=kCustom, calls=%all-reduce-scatter.3",
/// )?;
/// let fusion = module.instructions().next().unwrap();
/// assert_eq!((fusion.name(), fusion.opcode()), ("fusion.3", "fusion"));
/// assert_eq!(fusion.attribute("kind"), Some("kCustom"));
/// assert_eq!(fusion.called_computations().next().unwrap().name, "all-reduce-scatter.3");
///
/// let operand = fusion.operands().next().unwrap();
/// assert_eq!(operand.name(), "fusion.32");
/// assert_eq!(operand.shape_text(), Some("bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)}"));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Instruction<'m> {
    pub(crate) module: &'m Module,
    pub(crate) index: usize,
}

impl<'m> Instruction<'m> {
    pub(crate) fn record(&self) -> &'m InstructionRecord {
        &self.module.data.instructions[self.index]
    }

    /// Its name, without `%`.
    #[must_use]
    pub fn name(&self) -> &'m str {
        self.module.data.text(self.record().name)
    }

    /// Its place among the module's instructions, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The module it is in.
    #[must_use]
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// The computation it is in.
    #[must_use]
    pub fn computation(&self) -> Computation<'m> {
        Computation::of(self)
    }

    /// Whether it is marked `ROOT`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.record().is_root
    }

    /// What it does: `fusion`, `copy-start`, …
    #[must_use]
    pub fn opcode(&self) -> &'m str {
        self.module.data.text(self.record().opcode)
    }

    /// The text of its result's shape.
    #[must_use]
    pub fn shape_text(&self) -> &'m str {
        self.module.data.text(self.record().shape)
    }

    /// The shape of its result. A layout that isn't written stays absent.
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
        Shape::parse_as_written(self.shape_text())
    }

    /// What is between the parentheses: operands, a constant's literal, a parameter's number.
    #[must_use]
    pub fn operands_text(&self) -> &'m str {
        self.module.data.text(self.record().operands)
    }

    /// The instructions whose results it reads. A `constant`'s literal and a `parameter`'s number are no operands.
    #[must_use]
    pub fn operands(&self) -> Operands<'m> {
        let rest = match self.opcode() {
            "constant" | "parameter" => "",
            _ => self.operands_text(),
        };
        Operands { rest, computation: self.computation() }
    }

    /// The names of the [`operands`](Self::operands), without `%`.
    pub fn operand_names(&self) -> impl Iterator<Item = &'m str> + use<'m> {
        self.operands().map(|operand| operand.name())
    }

    /// Which of the computation's parameters this is, from 0, if it is one.
    #[must_use]
    pub fn parameter_number(&self) -> Option<usize> {
        if self.opcode() == "parameter" { trim(self.operands_text()).parse().ok() } else { None }
    }

    /// The text after the operands, from the comma on.
    #[must_use]
    pub fn attributes_text(&self) -> &'m str {
        self.module.data.text(self.record().attributes).trim()
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'m> {
        Attributes::new(self.attributes_text())
    }

    /// The text of one attribute's value, with its brackets or quotes (see [`unquote`](crate::unquote)).
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'m str> {
        self.attributes().get(name)
    }

    /// The computations it calls, with what for. Whether they are in the text is another question.
    pub fn called_computations(&self) -> impl Iterator<Item = Call<'m>> + use<'m> {
        crate::attributes::calls(self.module, self.attributes())
    }

    /// Where it comes from, as it says itself; see [`source`](Self::source) for file and line.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'m>> {
        self.attribute("metadata").map(Metadata::new)
    }

    /// Which parts of its result share an operand's buffer (`output_to_operand_aliasing`); empty if it says nothing.
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
        match self.attribute("output_to_operand_aliasing") {
            Some(text) => crate::alias::operand_aliases(text, self.module.offset_of(text)),
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
        Frames { module: self.module, next, left: self.module.data.table.frame_count() }
    }

    /// The bytes of the source it takes: from its name to the end of its attributes.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        let record = self.record();
        record.name.start as usize..record.attributes.end as usize
    }
}

impl fmt::Debug for Instruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instruction({} = {} {})", self.name(), self.shape_text(), self.opcode())
    }
}

impl PartialEq for Instruction<'_> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.module.data, &other.module.data) && self.index == other.index
    }
}

impl Eq for Instruction<'_> {}

/// Iterates over an instruction's [`Operand`]s.
#[derive(Clone, Debug)]
pub struct Operands<'m> {
    rest: &'m str,
    computation: Computation<'m>,
}

impl<'m> Iterator for Operands<'m> {
    type Item = Operand<'m>;

    fn next(&mut self) -> Option<Operand<'m>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let end = value_end(self.rest.as_bytes(), 0, false);
            let text = trim(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !text.is_empty() {
                return Some(Operand { text, computation: self.computation });
            }
        }
    }
}

/// An operand: `name` or `shape name`, with or without `%`.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'m> {
    text: &'m str,
    computation: Computation<'m>,
}

impl<'m> Operand<'m> {
    fn name_start(&self) -> usize {
        let name = self.text.bytes().rev().take_while(|byte| is_identifier(*byte)).count();
        let start = self.text.len() - name;
        start - usize::from(self.text[..start].ends_with('%'))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &'m str {
        self.text
    }

    /// The name of the instruction, without `%`.
    #[must_use]
    pub fn name(&self) -> &'m str {
        bare(&self.text[self.name_start()..])
    }

    /// The shape in front of the name, if there is one.
    #[must_use]
    pub fn shape_text(&self) -> Option<&'m str> {
        Some(self.text[..self.name_start()].trim_ascii_end()).filter(|shape| !shape.is_empty())
    }

    /// The instruction, if the text has it.
    #[must_use]
    pub fn instruction(&self) -> Option<Instruction<'m>> {
        self.computation.instruction(self.name())
    }
}

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
#[derive(Clone, Debug)]
pub struct Frames<'m> {
    module: &'m Module,
    next: u32,
    left: usize,
}

impl<'m> Iterator for Frames<'m> {
    type Item = SourceLocation<'m>;

    fn next(&mut self) -> Option<SourceLocation<'m>> {
        self.left = self.left.checked_sub(1)?;
        let data = &*self.module.data;
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
