//! Plan locks: the memory of programs, in a committed file.

use crate::{ComparedProgram, Compiler, comparison::each_once};
use serde::{Deserialize, Serialize, de};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt};
use tilewise::tpu::Generation;
use tilewise_audit::Failure;

/// The name and version of the file's format.
const SCHEMA: &str = "tilewise.plan.lock/1";

/// The plans of programs, as a file has them. [`ToString`] gives its text: sorted, an owner a line, without times, lines of the
/// source or absolute paths, so that it is the same bytes if it is written twice.
///
/// ```
/// use tilewise_report::Lock;
///
/// let lock = Lock::parse(r#"{"schema": "tilewise.plan.lock/1", "compiler": {"libtpu": "0.0.52"}, "programs": {}}"#)?;
/// assert_eq!(Lock::parse(&lock.to_string())?, lock);
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lock {
    /// The compiler of its programs.
    pub compiler: Compiler,
    /// The programs, by name.
    pub programs: BTreeMap<String, ComparedProgram>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    #[serde(deserialize_with = "each_once")]
    compiler: Compiler,
    #[serde(deserialize_with = "each_once")]
    programs: BTreeMap<String, Locked>,
}

/// A checked program of a lock: its TPU, its limit and all of its memory are known.
#[derive(Serialize, Deserialize)]
#[serde(try_from = "ComparedProgram")]
struct Locked(ComparedProgram);

impl TryFrom<ComparedProgram> for Locked {
    type Error = String;

    fn try_from(program: ComparedProgram) -> Result<Self, String> {
        let total = program.bytes.total;
        match program.tpu.as_deref().map(str::parse::<Generation>) {
            None => return Err("no TPU is named".to_owned()),
            Some(Err(error)) => return Err(error.to_string()),
            Some(Ok(_)) if program.bytes.limit.is_none_or(|limit| limit == 0) => return Err("no limit".to_owned()),
            Some(Ok(_)) if !program.is_complete => return Err("not all that it holds is known".to_owned()),
            Some(Ok(_)) => {}
        }
        if program.bytes.padding > total || program.owners.iter().any(|owner| owner.bytes > total) {
            return Err("a part is larger than the total".to_owned());
        }
        Ok(Self(program))
    }
}

impl Lock {
    /// A lock of these programs.
    #[must_use]
    pub fn new(compiler: Compiler, programs: BTreeMap<String, ComparedProgram>) -> Self {
        Self { compiler, programs }
    }

    /// The lock in a file.
    ///
    /// # Errors
    /// The text isn't a lock (`lock`), or is damaged: cut, edited, or merged with conflicts left in it
    /// (`damaged_lock`). The message names the line.
    pub fn parse(file: impl AsRef<[u8]>) -> Result<Self, Failure> {
        let file = file.as_ref();
        let damaged = |what: &str, line: usize| {
            let message = format!("the plan lock is damaged: {what}, line {line}");
            Failure::new("damaged_lock", message).with_help("take the committed one again, or renew it")
        };
        let text = str::from_utf8(file).map_err(|error| {
            let before = &file[..error.valid_up_to()];
            damaged("it isn't UTF-8 text", 1 + before.iter().filter(|&&byte| byte == b'\n').count())
        })?;
        let is_conflict =
            |line: &str| ["<<<<<<<", "|||||||", "=======", ">>>>>>>"].iter().any(|mark| line.starts_with(mark));
        if let Some(at) = text.lines().position(is_conflict) {
            return Err(damaged("two versions of it were merged, and the conflict is still there", at + 1));
        }
        let not_one = || Failure::new("lock", format!("this isn't a plan lock of the form {SCHEMA}"));
        let read: File = serde_json::from_str(text).map_err(|error| {
            // A lock that is cut off lacks its schema, which comes last.
            if !Self::is_lock(file) && serde_json::from_str::<de::IgnoredAny>(text).is_ok() {
                return not_one();
            }
            let (line, said) = (error.line(), error.to_string());
            damaged(said.rsplit_once(" at line ").map_or(&said, |(what, _)| what), line)
        })?;
        if read.schema != SCHEMA {
            return Err(not_one());
        }
        let programs = read.programs.into_iter().map(|(name, Locked(program))| (name, program)).collect();
        Ok(Self { compiler: read.compiler, programs })
    }

    /// Whether a file is meant as a lock, damaged or not.
    #[must_use]
    pub fn is_lock(file: &[u8]) -> bool {
        str::from_utf8(file).is_ok_and(|text| text.contains(SCHEMA))
    }

    /// The program of that name, with the lock's compiler.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<ComparedProgram> {
        let program = self.programs.get(name)?.clone();
        Some(ComparedProgram { compiler: Some(self.compiler.clone()), ..program })
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locked = |program: &ComparedProgram| {
            Locked(ComparedProgram { source: String::new(), compiler: None, ..program.clone() })
        };
        let programs = self.programs.iter().map(|(name, program)| (name.clone(), locked(program))).collect();
        let file = File { schema: SCHEMA.to_owned(), compiler: self.compiler.clone(), programs };
        // Keys are sorted in a value.
        let mut value = serde_json::to_value(file).map_err(|_| fmt::Error)?;
        let programs = value.get_mut("programs").and_then(Value::as_object_mut);
        let owners = programs.into_iter().flat_map(Map::values_mut).filter_map(|program| program.get_mut("owners"));
        for owner in owners.filter_map(Value::as_array_mut).flatten().filter_map(Value::as_object_mut) {
            // These change with every edit above them.
            owner.retain(|part, _| !matches!(part.as_str(), "line" | "padding_bytes"));
        }
        write_value(&value, 0, f)?;
        f.write_str("\n")
    }
}

/// Writes a value at this depth of nesting; from depth 3 on, one without nested values is one line.
fn write_value(value: &Value, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_leaf = |value: &Value| match value {
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => true,
    };
    let (items, brackets): (Vec<(Option<&String>, &Value)>, _) = match value {
        Value::Array(values) if !is_leaf(value) => (values.iter().map(|value| (None, value)).collect(), ['[', ']']),
        Value::Object(fields) if !is_leaf(value) => {
            (fields.iter().map(|(name, value)| (Some(name), value)).collect(), ['{', '}'])
        }
        _ => return write!(f, "{value}"),
    };
    let is_one_line = depth >= 3 && items.iter().all(|(_, value)| is_leaf(value));
    write!(f, "{}", brackets[0])?;
    for (at, (name, value)) in items.into_iter().enumerate() {
        f.write_str(if at > 0 { "," } else { "" })?;
        match is_one_line {
            true => f.write_str(if at > 0 { " " } else { "" })?,
            false => write!(f, "\n{:1$}", "", depth + 1)?,
        }
        if let Some(name) = name {
            write!(f, "{}: ", Value::from(name.as_str()))?;
        }
        write_value(value, depth + 1, f)?;
    }
    if !is_one_line {
        write!(f, "\n{:1$}", "", depth)?;
    }
    write!(f, "{}", brackets[1])
}
