//! XLA's error codes.

use crate::form::Form;

/// One of XLA's error codes.
#[derive(Debug)]
pub(crate) struct Code {
    /// `E1001`.
    pub(crate) code: &'static str,
    /// The name beside it, `CompileTimeScopedVmemOom`.
    name: &'static str,
    meaning: &'static str,
    /// The form of a message with this code only.
    pub(crate) form: Form,
}

/// The codes of <https://openxla.org/xla/errors_overview> and XLA's `error_codes.h`. Those below `E0100` copy status
/// codes and are left out.
const CODES: [Code; 13] = [
    Code {
        code: "E0100",
        name: "RuntimeBufferAllocationFailure",
        meaning: "at run time there was no memory for a buffer",
        form: Form::RunTime,
    },
    Code {
        code: "E0101",
        name: "RuntimeProgramAllocationFailure",
        meaning: "at run time there was no memory to load a program",
        form: Form::RunTime,
    },
    Code {
        code: "E0102",
        name: "RuntimeProgramInputMismatch",
        meaning: "a program was run with buffers of other sizes than it was compiled for",
        form: Form::InputMismatch,
    },
    Code {
        code: "E0200",
        name: "RuntimeUnexpectedCoreHalt",
        meaning: "a core stopped while it ran a program",
        form: Form::CoreHalt,
    },
    Code {
        code: "E1000",
        name: "CompileTimeHbmOom",
        meaning: "the program needs more HBM than the TPU has",
        form: Form::Assignment,
    },
    Code {
        code: "E1001",
        name: "CompileTimeScopedVmemOom",
        meaning: "one instruction needs more scoped VMEM than its limit",
        form: Form::Scoped,
    },
    Code {
        code: "E1002",
        name: "CompileTimeSparseCoreHbmOom",
        meaning: "the program needs more HBM than the TPU has",
        form: Form::Assignment,
    },
    Code {
        code: "E1200",
        name: "CompileTimeHostOffloadOutputLocationMismatch",
        meaning: "a result that is moved to the host is not where the program wants it",
        form: Form::HostPlacement,
    },
    Code {
        code: "E2001",
        name: "CompileTimeMosaicUnsupportedRhsType",
        meaning: "a kernel multiplies by a matrix of a type that this TPU's matrix unit can't read",
        form: Form::MatmulType,
    },
    Code {
        code: "E2002",
        name: "CompileTimeMosaicMisalignedBlockAndTiling",
        meaning: "a block of a kernel does not fit the tiles of its array",
        form: Form::Block,
    },
    Code {
        code: "E2003",
        name: "CompileTimeMosaicUnprovenMemoryAccessAlignment",
        meaning: "a kernel reads or writes at an index that the compiler can't prove to be a multiple of a tile",
        form: Form::Index,
    },
    Code {
        code: "E3000",
        name: "CompileTimeSparseCoreAllocationFailure",
        meaning: "a SparseCore's memory can't hold what its program allocates",
        form: Form::SparseCore,
    },
    Code {
        code: "E3001",
        name: "CompileTimeSparseCoreInvalidReplicaCount",
        meaning: "an embedding table can't be divided so that a SparseCore's memory holds the parts",
        form: Form::SparseCore,
    },
];

/// The meaning of an XLA error code such as `E1001`; `None` for others.
///
/// From <https://openxla.org/xla/errors_overview>.
///
/// ```
/// use tilewise_oom::meaning_of_code;
///
/// assert_eq!(meaning_of_code("E1001"), Some("one instruction needs more scoped VMEM than its limit"));
/// assert_eq!(meaning_of_code("E9999"), None);
/// ```
#[must_use]
pub fn meaning_of_code(code: &str) -> Option<&'static str> {
    CODES.iter().find(|known| known.code == code).map(|known| known.meaning)
}

/// How a text mentions a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mention {
    /// `E1001:`, `CompileTimeScopedVmemOom`: the message follows.
    Before,
    /// `…/errors/error_1001`: the message came before.
    Link,
}

/// The code that `word` mentions; `after` is the text behind it.
pub(crate) fn mentioned(word: &str, after: &str) -> Option<(&'static Code, Mention)> {
    match word.as_bytes() {
        // `E1001 10:21:07.000000 4711 file.cc:7]` is a line that was logged on the first of October.
        [b'E', _, _, _, _] => {
            let is_date = after.strip_prefix(' ').is_some_and(|rest| rest.as_bytes().get(2) == Some(&b':'));
            let code = CODES.iter().find(|code| code.code == word).filter(|_| !is_date)?;
            Some((code, Mention::Before))
        }
        [b'e', b'r', b'r', b'o', b'r', b'_', ..] => {
            let number = word.get("error_".len()..)?;
            CODES.iter().find(|code| code.code[1..] == *number).map(|code| (code, Mention::Link))
        }
        [b'C' | b'R', b'o' | b'u', ..] if word.len() > 16 => {
            CODES.iter().find(|code| code.name == word).map(|code| (code, Mention::Before))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_in_texts() {
        let code = |word, after| mentioned(word, after).map(|(code, mention)| (code.code, mention));
        assert_eq!(code("E1001", ": x"), Some(("E1001", Mention::Before)));
        assert_eq!(code("E1001", " 10:21:07"), None);
        assert_eq!(code("E0001", ":"), None);
        assert_eq!(code("error_2003", " for"), Some(("E2003", Mention::Link)));
        assert_eq!(code("CompileTimeHbmOom", ""), Some(("E1000", Mention::Before)));
        assert_eq!(code("Error", ":"), None);
    }
}
