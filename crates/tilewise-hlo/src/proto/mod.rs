//! Serialised modules, as text.
//!
//! A module's message says what its text says, so it is printed as XLA prints it and read like any text: whatever holds
//! for a program's text holds for its message. What no reader here asks for (windows, dimension numbers, literals that
//! aren't scalars of integers) is left out.

mod messages;
mod print;

use crate::error::{Error, ErrorKind};
use messages::{HloModuleProto, HloProto, HloSnapshot};
use prost::Message as _;

/// The text of a serialised `HloModuleProto`, `HloProto` or `HloSnapshot`, told apart by what is in it; `None` if the
/// bytes are none of them.
///
/// # Errors
///
/// [`Shape`](ErrorKind::Shape) for a shape that isn't valid, [`Syntax`](ErrorKind::Syntax) for names and texts that
/// could not stand in a module's text.
pub(crate) fn text(bytes: &[u8]) -> Result<Option<String>, Error> {
    module(bytes).map(|module| print::module(&module)).transpose()
}

fn module(bytes: &[u8]) -> Option<HloModuleProto> {
    let whole = |module: &HloModuleProto| !module.computations.is_empty();
    let bare = HloModuleProto::decode(bytes).ok().filter(whole);
    let wrapped = || HloProto::decode(bytes).ok()?.hlo_module.filter(whole);
    let snapshot = || HloSnapshot::decode(bytes).ok()?.hlo?.hlo_module.filter(whole);
    bare.or_else(wrapped).or_else(snapshot)
}

pub(crate) fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Syntax, None, message)
}
