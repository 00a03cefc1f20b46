//! The content of a file: programs, or the compiler's plan of one.

use super::interface::Interface;
use crate::failure::Failure;
use tilewise_hlo::{BufferAssignment, DECOMPRESSION_LIMIT, Document, Module};
use tilewise_memory::Machine;

/// The content of a file, from [`read`](Content::read).
#[derive(Debug)]
#[non_exhaustive]
pub enum Content {
    /// A program.
    Program(Program),
    /// The compiler's plan, without its program.
    BufferAssignment(BufferAssignment),
}

/// A program, with the compiler's own plan if the file has it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Program {
    /// The program.
    pub module: Module,
    /// The compiler's own plan.
    pub buffer_assignment: Option<BufferAssignment>,
}

impl Content {
    /// Reads the bytes of a file: text, proto or profile, plain or gzip; a text or a profile may hold several programs.
    /// Returns at least one content or failure.
    ///
    /// ```
    /// use tilewise_audit::{Audit, Content};
    ///
    /// let mut found = Content::read(b"x = f32[400000,12]{1,0:T(8,128)} parameter(0)".to_vec());
    /// let Some(Ok(Content::Program(program))) = found.pop() else { panic!("a program") };
    /// assert_eq!(Audit::new(&program).run().padded(), (1, 185_600_000));
    ///
    /// let failure = Content::read(b"HloModule m\nENTRY main {\n  x = f32[8] parameter(0)".to_vec()).pop().unwrap().unwrap_err();
    /// assert_eq!(failure.kind, "truncated");
    /// ```
    #[must_use]
    pub fn read(bytes: Vec<u8>) -> Vec<Result<Self, Failure>> {
        let contents = |document: Result<Document, tilewise_hlo::Error>| match document {
            Ok(document) => Self::of(document),
            Err(error) => vec![Err(error.into())],
        };
        Document::decode_all(bytes, DECOMPRESSION_LIMIT).into_iter().flat_map(contents).collect()
    }

    /// The contents of a document, as [`read`](Self::read) returns them.
    #[must_use]
    pub fn of(document: Document) -> Vec<Result<Self, Failure>> {
        let Document { text, mut buffer_assignment, .. } = document;
        if BufferAssignment::is_text(&text) {
            return vec![BufferAssignment::parse(&text).map(Self::BufferAssignment).map_err(Failure::from)];
        }
        // The plan came with a proto, which holds one program.
        let mut plan = || buffer_assignment.take();
        let header = lone_header(&text).map(str::to_owned);
        let program = |module| Ok(Self::Program(Program { buffer_assignment: plan(), ..Program::checked(module)? }));
        let found: Vec<Result<Self, Failure>> = Module::parse_all(text).into_iter().map(program).collect();
        match header {
            Some(header) if found.iter().all(Result::is_err) => vec![Err(cut(&header))],
            _ => found,
        }
    }
}

/// A module's header, if the text has nothing else.
fn lone_header(text: &str) -> Option<&str> {
    let text = text.trim();
    (text.starts_with("HloModule ") && !text.contains('\n')).then_some(text)
}

/// The failure of a text that ends after its header.
fn cut(header: &str) -> Failure {
    let interface = Interface::of_header(header).map(|interface| format!(": {interface}")).unwrap_or_default();
    Failure::new("truncated", format!("the text ends after the module's header{interface}")).with_help(WHOLE)
}

/// Help for a truncated text.
const WHOLE: &str = "dump or copy the module again, whole";

impl From<Module> for Program {
    /// The program without the compiler's plan.
    fn from(module: Module) -> Self {
        Self { module, buffer_assignment: None }
    }
}

impl Program {
    /// The first program of a text.
    ///
    /// # Errors
    /// Those of [`Module::parse`] and [`Module::check`].
    pub fn parse(text: impl Into<String>) -> Result<Self, Failure> {
        Self::checked(Module::parse(text))
    }

    /// Checks a program: missing parts would be audited as if they held nothing.
    fn checked(module: Result<Module, tilewise_hlo::Error>) -> Result<Self, Failure> {
        let module = module?;
        match module.check() {
            Ok(()) => Ok(module.into()),
            Err(error) => {
                let failure = Failure::from(error).with_help(WHOLE);
                let interface = Interface::of(&module).filter(|_| failure.kind == "truncated");
                let interface = interface.map(|interface| format!("; {interface}")).unwrap_or_default();
                Err(Failure { message: format!("{}{interface}", failure.message), ..failure })
            }
        }
    }

    /// Refuses a program that this machine's compiler did not make.
    ///
    /// # Errors
    /// For a TPU, those of [`for_tpu`](Self::for_tpu); for another machine `not_this_machine`, if arrays lie in tiles.
    pub fn for_machine(&self, machine: Machine) -> Result<(), Failure> {
        if machine.generation().is_some() {
            return self.for_tpu();
        }
        if !self.module.has_tiles() {
            return Ok(());
        }
        let message = format!("not compiled for `{machine}`: arrays lie in tiles, so it was compiled for a TPU");
        Err(Failure::new("not_this_machine", message).with_help("leave `--machine` out, or name the TPU's generation"))
    }

    /// Refuses a program that was never laid out for a TPU: its sizes would be those of rows without padding.
    ///
    /// # Errors
    /// `not_tpu`, if no array lies in tiles.
    pub fn for_tpu(&self) -> Result<(), Failure> {
        for_tpu(&self.module)
    }
}

/// Refuses a program that was never laid out for a TPU.
pub(crate) fn for_tpu(module: &Module) -> Result<(), Failure> {
    if module.has_tiles() {
        return Ok(());
    }
    let state = if module.is_scheduled() {
        "it was compiled for a CPU or a GPU"
    } else {
        "it was compiled for another machine, or its layouts are not assigned yet"
    };
    let message = format!("not compiled for a TPU: no array lies in tiles, so {state}, and sizes on a TPU differ");
    Err(Failure::new("not_tpu", message).with_help(HOW_TO_COMPILE))
}

/// How to get a program that is compiled for a TPU.
const HOW_TO_COMPILE: &str = "\
no TPU is needed to compile for one: pip install jax libtpu, then with TPU_SKIP_MDS_QUERY=1 JAX_PLATFORMS=cpu
from jax.experimental import topologies
device = topologies.get_topology_desc(topology_name=\"v5e:2x2\", platform=\"tpu\").devices[0]
x = jax.ShapeDtypeStruct(shape, dtype, sharding=jax.sharding.SingleDeviceSharding(device))
print(jax.jit(f).lower(x).compile().as_text())";
