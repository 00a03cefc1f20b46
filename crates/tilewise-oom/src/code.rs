//! XLA's error codes.

/// What an error code of XLA's stands for, such as `E1001`; `None` for others.
///
/// From <https://openxla.org/xla/errors_overview>.
///
/// ```
/// use tilewise_oom::meaning_of_code;
///
/// assert_eq!(meaning_of_code("E1001"), Some("one instruction needs more scoped VMEM than it may have"));
/// assert_eq!(meaning_of_code("E9999"), None);
/// ```
#[must_use]
pub fn meaning_of_code(code: &str) -> Option<&'static str> {
    Some(match code {
        "E0100" => "at run time there was no memory for a buffer",
        "E0101" => "at run time there was no memory to load a program",
        "E0102" => "a program was run with buffers of other sizes than it was compiled for",
        "E0200" => "a core stopped while it ran a program",
        "E1000" | "E1002" => "the program needs more HBM than there is",
        "E1001" => "one instruction needs more scoped VMEM than it may have",
        "E1200" => "a result that is moved to the host is not where the program wants it",
        "E2001" => "a kernel multiplies by a matrix of a type that this TPU's matrix unit can't read",
        "E2002" => "a block of a kernel does not fit the tiles of its array",
        "E2003" => "a kernel reads or writes at an index that the compiler can't prove to be a multiple of a tile",
        "E3000" => "a SparseCore's memory can't hold what its program allocates",
        "E3001" => "an embedding table can't be divided so that a SparseCore's memory holds the parts",
        _ => return None,
    })
}

/// Whether the code says that memory ran out.
pub(crate) fn is_memory(code: &str) -> bool {
    matches!(code, "E0100" | "E0101" | "E1000" | "E1001" | "E1002" | "E3000" | "E3001")
}
