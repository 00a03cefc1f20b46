//! Operations beside the core: copies, collectives, transfers to the host.

use foldhash::HashMap;

use crate::{Estimate, Kind};

/// Hardware that works while the core computes, one operation after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Copies within the device.
    Dma,
    /// Links to other chips.
    Link,
    /// The connection to the host.
    Host,
    /// The SparseCores and the host's own work, which don't take turns.
    Beside,
}

/// An asynchronous operation under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The index of the instruction that began it.
    start: usize,
    ends: Estimate,
    /// The kind of a wait for it.
    wait: Kind,
}

/// A wait of the core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waited {
    /// The index of the instruction that began the awaited operation.
    pub(crate) start: usize,
    pub(crate) seconds: Estimate,
    pub(crate) kind: Kind,
}

/// The core's time in one run of a computation, and the ends of the operations beside it.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    pub(crate) now: Estimate,
    free: [Estimate; 3],
    pending: HashMap<usize, Pending>,
}

impl Channels {
    /// Begins an operation of that many seconds; `start` is the index of its instruction.
    pub(crate) fn begin(&mut self, start: usize, channel: Channel, seconds: f64, wait: Kind) {
        let lasts = Estimate::of(seconds);
        let number = match channel {
            Channel::Dma => 0,
            Channel::Link => 1,
            Channel::Host => 2,
            Channel::Beside => {
                self.pending.insert(start, Pending { start, ends: self.now + lasts, wait });
                return;
            }
        };
        let ends = self.now.max(self.free[number]) + lasts;
        self.free[number] = ends;
        self.pending.insert(start, Pending { start, ends, wait });
    }

    /// Lets an instruction stand for the operation of another.
    pub(crate) fn hand_on(&mut self, from: usize, to: usize) {
        if let Some(pending) = self.pending.get(&from).copied() {
            self.pending.insert(to, pending);
        }
    }

    /// Waits for the operation that an instruction stands for; `None` if it is done already.
    pub(crate) fn end(&mut self, instruction: usize) -> Option<Waited> {
        let &Pending { start, ends, wait: kind } = self.pending.get(&instruction)?;
        let seconds = ends.since(self.now);
        self.now = self.now.max(ends);
        (!seconds.is_zero()).then_some(Waited { start, seconds, kind })
    }
}
