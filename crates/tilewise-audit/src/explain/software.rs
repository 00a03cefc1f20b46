//! Options of a text's own software, before steps that only look for a cause.

use crate::advice::{
    Recommendation, Target,
    finding::{ElsewhereFinding, Finding, MemoryFinding, WholeArray},
};
use tilewise_oom::{Level, Message, OomVerdict, SoftwareOption, UntiledMachine};

/// Maximum number of options that are advised.
const MOST: usize = 2;

/// Puts options of the text's software before a step that only looks for a cause, or names one without a change.
pub(super) fn with_software(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let is_of_host = message.machine() == Some(UntiledMachine::Host) || message.memory_space.as_deref() == Some("host");
    let is_of_core = matches!(message.verdict(), OomVerdict::KernelMemory | OomVerdict::Spills);
    let is_error = message.form.level() == Level::Error && !is_of_core && message.server.is_none();
    let is_general = advice.first().is_some_and(|piece| is_general(&piece.finding));
    let is_of_memory = |option: &&SoftwareOption| if is_of_host { option.of_host } else { option.of_device };
    let options = message.job.software.iter().filter(is_of_memory).filter(|_| is_error && is_general).take(MOST);
    let found = options.map(|option| {
        let finding = Finding::Memory(MemoryFinding::Software(*option));
        Recommendation::new(finding, Target::Value, message.framework)
    });
    // Memory that overflows into the host's is a setting of the process, and needs no other change.
    let is_overflow =
        |piece: &Recommendation| matches!(piece.finding, Finding::Elsewhere(ElsewhereFinding::UnifiedMemory { .. }));
    let at = usize::from(advice.first().is_some_and(is_overflow));
    advice.splice(at..at, found.collect::<Vec<_>>());
    advice
}

/// Whether a finding holds for any software.
fn is_general(finding: &Finding) -> bool {
    match finding {
        Finding::Memory(finding) => matches!(
            finding,
            MemoryFinding::LookInside { .. }
                | MemoryFinding::LessAtOnce { .. }
                | MemoryFinding::SmallerInputs(_)
                | MemoryFinding::OneArray { .. }
                | MemoryFinding::Results { .. }
        ),
        Finding::Elsewhere(finding) => matches!(
            finding,
            ElsewhereFinding::Holders(_)
                | ElsewhereFinding::TooLarge(_)
                | ElsewhereFinding::Smaller(_)
                | ElsewhereFinding::UnifiedMemory { .. }
                | ElsewhereFinding::Whole(WholeArray::Unknown)
                | ElsewhereFinding::HostProcesses
                | ElsewhereFinding::HostLargest(..)
                | ElsewhereFinding::HostGrowth(_)
        ),
        _ => false,
    }
}
