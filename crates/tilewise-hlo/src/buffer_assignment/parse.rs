//! The text of a buffer assignment.

use super::{AllocationParameter, AssignedBuffer, BufferAllocation, BufferAssignment};
use crate::error::{Error, ErrorKind};

pub(super) const TITLE: &str = "BufferAssignment:";

pub(super) fn parse(text: &str) -> Result<BufferAssignment, Error> {
    let mut allocations: Vec<BufferAllocation> = Vec::new();
    let (mut at, mut is_whole) = (0, false);
    for line in text.split_inclusive('\n') {
        let (start, content) = (at, line.trim());
        at += line.len();
        let error = |what: &str| {
            let message = format!("expected {what} in a buffer assignment");
            Error::new(ErrorKind::Syntax, Some(start..start + line.trim_end().len()), message)
        };
        if let Some(allocation) = content.strip_prefix("allocation ") {
            allocations.push(read_allocation(allocation).ok_or_else(|| error("`N: size N, …`"))?);
        } else if let Some(value) = content.strip_prefix("value: ") {
            let value = read_value(value).ok_or_else(|| error("`<N name @N> (size=N,offset=N)`"))?;
            let last = allocations.last_mut().ok_or_else(|| error("an allocation before its values"))?;
            last.values.push(value);
        } else if let Some(total) = content.strip_prefix("Total bytes used: ") {
            let said: u64 =
                total.split(' ').next().and_then(|total| total.parse().ok()).ok_or_else(|| error("a total"))?;
            let sum = allocations.iter().try_fold(0_u64, |sum, allocation| sum.checked_add(allocation.size));
            if sum != Some(said) {
                let message = format!(
                    "the buffer assignment is damaged: its allocations are {} bytes, and it says {said}; dump or copy it again, whole",
                    sum.map_or_else(|| "more than 64 bits of".to_owned(), |sum| sum.to_string())
                );
                return Err(Error::new(ErrorKind::Truncated, Some(start..start + line.trim_end().len()), message));
            }
            is_whole = true;
            break;
        } else if !content.is_empty() && content != TITLE {
            // The list of values that follows has no further places.
            break;
        }
    }
    if allocations.is_empty() {
        return Err(Error::new(ErrorKind::Truncated, None, "the buffer assignment has no allocation"));
    }
    Ok(BufferAssignment { allocations, heap_traces: Vec::new(), is_whole })
}

/// Reads `0: size 512, color 1, page 0, parameter 0, shape |f32[2]| at ShapeIndex {}, maybe-live-out:`.
fn read_allocation(text: &str) -> Option<BufferAllocation> {
    let (index, rest) = text.split_once(": size ")?;
    let (size, flags) = rest.split_once([',', ':'])?;
    let mut allocation =
        BufferAllocation { index: index.parse().ok()?, size: size.parse().ok()?, ..BufferAllocation::default() };
    let flags = flags.trim().trim_end_matches(':');
    // Shapes have commas of their own, and stand between bars.
    for (at, part) in flags.split('|').enumerate().filter(|(at, _)| at % 2 == 0) {
        for flag in part.split(", ").map(str::trim) {
            match flag.split_once(' ') {
                Some(("color", number)) => allocation.memory_space = number.parse().ok()?,
                Some(("parameter", number)) => {
                    let number = number.parse().ok()?;
                    let index = flags.split('|').nth(at + 2 - at % 2).and_then(|rest| rest.split_once("ShapeIndex "));
                    let shape_index = index.map_or(Some(Vec::new()), |(_, index)| read_index(index.split('}').next()?));
                    allocation.parameter = Some(AllocationParameter { number, shape_index: shape_index? });
                }
                _ => match flag {
                    "constant" => allocation.is_constant = true,
                    "thread-local" => allocation.is_thread_local = true,
                    "maybe-live-out" => allocation.is_live_out = true,
                    _ => {}
                },
            }
        }
    }
    Some(allocation)
}

/// Reads `<40 fusion{0} @1> (size=512,offset=0): shape`.
fn read_value(text: &str) -> Option<AssignedBuffer> {
    let (id, rest) = text.strip_prefix('<')?.split_once(' ')?;
    let (name, rest) = rest.split_once(" @")?;
    let (_, rest) = rest.split_once("> (size=")?;
    let (size, rest) = rest.split_once(",offset=")?;
    let (offset, _) = rest.split_once(')')?;
    // A value that joins others is marked: `while{1} (phi)`.
    let name = name.split(' ').next().unwrap_or(name);
    let (instruction, index) = name.split_once('{').unwrap_or((name, ""));
    Some(AssignedBuffer {
        id: id.parse().ok()?,
        instruction: instruction.to_owned(),
        shape_index: read_index(index.trim_end_matches('}'))?,
        offset: offset.parse().ok()?,
        size: size.parse().ok()?,
    })
}

/// Reads `0,1`, after a brace or not.
fn read_index(text: &str) -> Option<Vec<usize>> {
    let text = text.trim_start_matches('{');
    if text.is_empty() { Some(Vec::new()) } else { text.split(',').map(|number| number.trim().parse().ok()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_of_every_kind() {
        let text = "BufferAssignment:\n\
            allocation 3: size 8, color 2, page 0, preallocated-temp:\n \
            value: <7 while{1,0} (phi) @2> (size=4,offset=4): u32[]{:S(2)}\n\
            allocation 4: size 512, page 0, parameter 1, shape |(f32[2], f32[])| at ShapeIndex {0,2}, maybe-live-out:\n\
            allocation 5: size 0, page 0, output shape is |(f32[2], f32[])|, maybe-live-out:\n\
            allocation 6: size 1, constant:\n\
            allocation 7: size 1, thread-local:\n\nTotal bytes used: 522\nUsed values:\n";
        let assignment = parse(text).unwrap();
        let [temporary, argument, result, constant, local] = assignment.allocations() else { panic!("five") };
        assert!(temporary.is_temporary() && temporary.memory_space == 2);
        let value = &temporary.values[0];
        assert_eq!((value.id, value.instruction.as_str(), &value.shape_index[..]), (7, "while", &[1, 0][..]));
        let parameter = argument.parameter.as_ref().unwrap();
        assert_eq!((parameter.number, &parameter.shape_index[..], argument.is_live_out), (1, &[0, 2][..], true));
        assert!(result.is_live_out && result.parameter.is_none());
        assert!(constant.is_constant && local.is_thread_local && !local.is_temporary());
    }

    #[test]
    fn other_lines_are_errors_that_say_where() {
        let text = "BufferAssignment:\nallocation 0: size 4:\n value: <x y @0> (size=4,offset=0): f32[]\n";
        let error = parse(text).unwrap_err();
        assert_eq!(
            (error.kind(), &text[error.span().unwrap()]),
            (ErrorKind::Syntax, " value: <x y @0> (size=4,offset=0): f32[]")
        );
        for text in
            ["allocation x: size 4:", "allocation 0: size -4:", "value: <1 y @0> (size=4,offset=0):", "allocation 0"]
        {
            assert_eq!(parse(text).unwrap_err().kind(), ErrorKind::Syntax, "{text}");
        }
        assert_eq!(parse("BufferAssignment:\n").unwrap_err().kind(), ErrorKind::Truncated);
    }

    #[test]
    fn what_lacks_a_part_is_damaged() {
        let value =
            |number: u32, offset: &str| format!(" value: <{number} v{number} @0> (size=8,offset={offset}): f32[2]\n");
        let allocation = |number: u32| {
            format!("allocation {number}: size 16:\n{}{}", value(2 * number, "0"), value(2 * number + 1, "8"))
        };
        let whole: String = (0..4).map(allocation).collect();
        let text = |allocations: &str, total: &str| format!("{TITLE}\n{allocations}{total}");
        let total = "\nTotal bytes used: 64 (64B)\n";
        let read = |text: String| BufferAssignment::parse(&text).map_err(|error| error.to_string());
        assert!(read(text(&whole, total)).is_ok() && read(text(&whole, "")).is_ok());
        for gone in 0..4 {
            let rest: String = (0..4).filter(|number| *number != gone).map(allocation).collect();
            let message = read(text(&rest, total)).unwrap_err();
            assert!(message.contains("its allocations are 48 bytes, and it says 64"), "{message}");
            // Without the total, the last can't be seen missing.
            let without = read(text(&rest, ""));
            assert_eq!(without.is_ok(), gone == 3, "{gone}");
            assert!(without.is_ok() || without.unwrap_err().contains(&format!("it lacks allocation {gone}")));
        }
        for (offset, what) in
            [("9", "`v7` takes 8 bytes from 9 on of allocation 3"), ("18446744073709551615", "`v7` takes")]
        {
            let moved = whole.replacen(&value(7, "8"), &value(7, offset), 1);
            assert!(read(text(&moved, total)).unwrap_err().contains(what));
        }
        assert!(read(text(&(whole.clone() + &allocation(3)), "")).unwrap_err().contains("allocation 3 twice"));
    }
}
