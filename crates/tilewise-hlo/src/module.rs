//! A module: its text, computations and instructions.

use std::fmt;
use std::sync::Arc;

use crate::alias::InputOutputAlias;
use crate::attributes::Attributes;
use crate::computation::Computation;
use crate::error::{Error, ErrorKind, Warning, WarningKind};
use crate::instruction::Instruction;
use crate::record::Data;

/// A module of HLO text.
///
/// It owns its text and keeps ranges into it: 44 bytes an instruction. Shapes and attributes are read when asked for.
/// Clones share everything and cost nothing, on other threads too.
///
/// ```
/// use tilewise_hlo::{Module, Opcode};
///
/// let module = Module::parse("\
/// HloModule double, is_scheduled=true
///
/// ENTRY %main (x: f32[8]) -> f32[8] {
///   %x = f32[8]{0:T(256)} parameter(0)
///   ROOT %sum = f32[8]{0:T(256)} add(%x, %x), metadata={op_name=\"add\"}
/// }
/// ")?;
/// assert_eq!(module.name(), "double");
/// let root = module.entry().unwrap().root().unwrap();
/// assert_eq!(root.opcode(), Opcode::Add);
/// assert_eq!(root.shape_text(), "f32[8]{0:T(256)}");
/// assert_eq!(root.operand_names().collect::<Vec<_>>(), ["x", "x"]);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone)]
pub struct Module {
    pub(crate) data: Arc<Data>,
}

impl Module {
    /// Reads HLO text: a whole module, or lines of one.
    ///
    /// Text before the `HloModule` line is skipped. Instructions outside any computation go into an unnamed one. Of
    /// several modules only the first is read. A truncated text is read as far as it goes. Parts that could not be
    /// read, or aren't defined, are in [`warnings`](Self::warnings): call [`check`](Self::check) before you rely on the
    /// module as a whole. Time is linear in the text, whatever the text.
    ///
    /// # Errors
    ///
    /// [`NotHlo`](crate::ErrorKind::NotHlo) if there is no instruction at all,
    /// [`TooLarge`](crate::ErrorKind::TooLarge) from 4 GiB on.
    ///
    /// ```
    /// use tilewise_hlo::Module;
    ///
    /// let line = "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)} add(exponential.183, broadcast.3115)";
    /// let module = Module::parse(line)?;
    /// assert_eq!(module.instructions().next().unwrap().name(), "add.936");
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn parse(source: impl Into<String>) -> Result<Self, Error> {
        Ok(Self { data: Arc::new(crate::parse::parse(source.into())?) })
    }

    /// Reads every module of a text, one after another, as [`parse`](Self::parse) reads the first: one result a module,
    /// and at least one.
    ///
    /// ```
    /// use tilewise_hlo::Module;
    ///
    /// let text = "HloModule a\nf { x = f32[] parameter(0)\n}\nHloModule b\nf { x = f32[] parameter(0)\n}";
    /// let modules = Module::parse_all(text).into_iter().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(modules.iter().map(Module::name).collect::<Vec<_>>(), ["a", "b"]);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn parse_all(source: impl Into<String>) -> Vec<Result<Self, Error>> {
        let modules = crate::parse::parse_all(source.into()).into_iter();
        modules.map(|data| Ok(Self { data: Arc::new(data?) })).collect()
    }

    /// Refuses a text that is cut off, or that XLA's own parser refuses: names that are defined twice, or that are used
    /// and not defined above, a second `ENTRY`, and so on. Only a text that passes is as a compiler printed it.
    ///
    /// Lines without an `HloModule` line are a [part](Self::is_part) of a program and never refused.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated) if the text ends within the module, else [`Refused`](ErrorKind::Refused)
    /// with the first fault.
    ///
    /// ```
    /// # use tilewise_hlo::{ErrorKind, Module, WarningKind};
    /// let text = "HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  b = f32[8] negate(c)\n}";
    /// let error = Module::parse(text)?.check().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Refused(WarningKind::UndefinedOperand));
    /// assert_eq!((error.to_string().as_str(), error.span()), ("line 4: the operand isn't defined above: `c`", Some(68..69)));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        let refused = || self.warnings().iter().filter(|warning| warning.kind().is_refused_by_xla());
        if self.is_part() {
            return Ok(());
        }
        if self.is_truncated() {
            let open = refused().find(|warning| warning.kind() == WarningKind::UnterminatedComputation);
            let place = match open.and_then(|warning| self.source().get(warning.span())) {
                Some(computation) => format!("within computation `{computation}`"),
                None => "before the entry computation".to_owned(),
            };
            let lines = self.source().lines().count();
            let message = format!("the HLO text is cut off: it ends in line {lines}, {place}");
            return Err(Error::new(ErrorKind::Truncated, open.map(Warning::span), message));
        }
        let Some(first) = refused().min_by_key(|warning| warning.span().start) else { return Ok(()) };
        Err(Error::new(ErrorKind::Refused(first.kind()), Some(first.span()), self.describe(first)))
    }

    /// A warning with its line and the text it is about.
    fn describe(&self, warning: &Warning) -> String {
        /// Maximum characters of a text in a message.
        const SHOWN: usize = 60;
        // Names and operands that the text leaves out stand behind it.
        let start = warning.span().start.min(self.data.length);
        let line = memchr::memchr_iter(b'\n', &self.data.source.as_bytes()[..start]).count() + 1;
        let text = self.data.source.get(warning.span()).and_then(|text| text.lines().next()).unwrap_or_default();
        let shown: String = text.chars().take(SHOWN).collect();
        let cut = if shown.len() < text.len() { "…" } else { "" };
        format!("line {line}: {}: `{shown}{cut}`", warning.kind().message())
    }

    /// Whether the text ends within the module: a part of it, perhaps its entry, is missing. Lines without an
    /// `HloModule` line are no truncated module.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        use WarningKind::{EntryMissing, UnterminatedComment, UnterminatedComputation};
        let is_cut = |kind| matches!(kind, UnterminatedComputation | UnterminatedComment | EntryMissing);
        !self.is_part() && self.warnings().iter().any(|warning| is_cut(warning.kind()))
    }

    /// Whether there is no `HloModule` line: the text is a part of a program, or was never compiled.
    #[must_use]
    pub fn is_part(&self) -> bool {
        !self.data.has_header
    }

    /// Whether any instruction has a tiled layout, as in every program for a TPU.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// assert!(!Module::parse("x = f32[8,128]{1,0} parameter(0)")?.has_tiles());
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn has_tiles(&self) -> bool {
        self.data.has_tiles()
    }

    /// Whether arrays are written without layouts where no array has tiles: then they have XLA's default layouts, as in
    /// its parser. No compiler prints such a text.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("x = f32[8,128] parameter(0)")?;
    /// assert!(module.leaves_layouts_out());
    /// assert_eq!(module.instructions().next().unwrap().shape().unwrap().to_string(), "f32[8,128]{1,0}");
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn leaves_layouts_out(&self) -> bool {
        let lacks_layout = |shape: &str| {
            let bytes = shape.as_bytes();
            memchr::memchr_iter(b']', bytes).any(|at| bytes.get(at + 1) != Some(&b'{') && !bytes[..at].ends_with(b"["))
        };
        !self.has_tiles() && self.instructions().any(|instruction| lacks_layout(instruction.shape_text()))
    }

    /// The text.
    #[must_use]
    pub fn source(&self) -> &str {
        self.data.source.get(..self.data.length).unwrap_or_default()
    }

    /// The module's name; empty if there is no `HloModule` line.
    #[must_use]
    pub fn name(&self) -> &str {
        self.data.text(self.data.name)
    }

    /// Whether the instructions are in the order in which they run (`is_scheduled=true`).
    #[must_use]
    pub fn is_scheduled(&self) -> bool {
        self.attribute("is_scheduled") == Some("true")
    }

    /// The attributes of the `HloModule` line.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes::new(self.data.text(self.data.header))
    }

    /// The text of one attribute of the `HloModule` line.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("HloModule m, replica_count=2\nf { x = f32[] parameter(0)\n}")?;
    /// assert_eq!(module.attribute("replica_count"), Some("2"));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().get(name)
    }

    /// `(parameters)->result` with layouts, as the `HloModule` line has it, without its braces.
    #[must_use]
    pub fn entry_computation_layout(&self) -> Option<&str> {
        let text = self.attribute("entry_computation_layout")?;
        Some(text.strip_prefix('{')?.strip_suffix('}')?.trim())
    }

    /// The outputs that share a parameter's buffer (`input_output_alias`); empty without the attribute.
    ///
    /// # Errors
    ///
    /// [`Syntax`](crate::ErrorKind::Syntax) if the attribute isn't written as XLA does
    /// (`HloInputOutputAliasConfig::ToShortString` in xla/hlo/ir/hlo_input_output_alias_config.cc).
    ///
    /// ```
    /// # use tilewise_hlo::{AliasKind, Module};
    /// let text = "HloModule m, input_output_alias={ {0}: (2, {}, may-alias) }\nf { x = f32[] parameter(0)\n}";
    /// let aliases = Module::parse(text)?.input_output_aliases()?;
    /// assert_eq!((&aliases[0].output_index[..], aliases[0].parameter_number), (&[0][..], 2));
    /// assert_eq!(aliases[0].kind, AliasKind::May);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn input_output_aliases(&self) -> Result<Vec<InputOutputAlias>, Error> {
        match self.attribute("input_output_alias") {
            Some(text) => crate::alias::input_output_aliases(text, self.data.offset_of(text)),
            None => Ok(Vec::new()),
        }
    }

    /// All computations, in the order of the text.
    pub fn computations(&self) -> impl DoubleEndedIterator<Item = Computation<'_>> + ExactSizeIterator + Clone {
        (0..self.data.computations.len()).map(|index| Computation { data: &self.data, index })
    }

    /// The entry computation: the one marked `ENTRY`, else the last one, as in XLA. A truncated module without mark
    /// has none.
    #[must_use]
    pub fn entry(&self) -> Option<Computation<'_>> {
        self.data.entry.map(|index| Computation { data: &self.data, index })
    }

    /// The computation of this name (without `%`); the first if several share it.
    #[must_use]
    pub fn computation(&self, name: &str) -> Option<Computation<'_>> {
        Computation::named(&self.data, name)
    }

    /// All instructions of all computations, in the order of the text.
    pub fn instructions(&self) -> impl DoubleEndedIterator<Item = Instruction<'_>> + ExactSizeIterator + Clone {
        (0..self.data.instructions.len()).map(|index| Instruction { data: &self.data, index })
    }

    /// The instruction of this [index](Instruction::index).
    #[must_use]
    pub fn instruction(&self, index: usize) -> Option<Instruction<'_>> {
        (index < self.data.instructions.len()).then_some(Instruction { data: &self.data, index })
    }

    /// Parts that were skipped, aren't defined, or contradict themselves. Empty for a compiler's text.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.data.warnings
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.name())
            .field("computations", &self.data.computations.len())
            .field("instructions", &self.data.instructions.len())
            .field("warnings", &self.data.warnings.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_names_mean_the_first() {
        let text = "f { x = f32[] add(a)\n x = s8[] add(b)\n}\nf { y = f32[] add(c)\n}\nENTRY e { z = f32[] add(d)\n}";
        let module = Module::parse(text).unwrap();
        let first = module.computation("f").unwrap();
        assert_eq!((first.index(), first.instruction("x").unwrap().shape_text()), (0, "f32[]"));
        assert!(first.instruction("y").is_none() && module.computation("").is_none());
    }
}
