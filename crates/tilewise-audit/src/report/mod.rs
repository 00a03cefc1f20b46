//! The report of an audit: the contents of a program's memory over time.

mod agreement;
mod audit;
mod buffers;
mod cost;
mod fitting;
mod groups;
mod kernels;
mod neighbours;
mod passes;
mod peak;
mod pieces;
mod plan_row;
mod purposes;
mod rows;
mod sections;
mod span;
mod time;
mod timeline;
mod warning;
mod work;

pub use audit::{Audit, audit};
pub use cost::ChangeCost;
pub use fitting::FittingSize;
pub use groups::{Meaning, PeakGroup, Width};
pub use kernels::{BoundaryChange, ForcedBy, KernelArray, KernelRow, KernelSide, Remedy};
pub use neighbours::{Neighbour, Neighbours};
pub use peak::{PeakRow, SpacePeak};
pub use pieces::{ModuleRow, Pass, StandingRow, TimelinePiece};
pub use plan_row::{Origin, Origins, PlanPiece, PlanRow};
pub use rows::{Agreement, BufferRow, MemoryBounds, PlacedElsewhere, SpaceTotal};
pub use sections::Report;
pub use span::Span;
pub use time::{MomentTime, TimeGroup, TimeRow, by_kind, by_line, by_module};
pub use timeline::{OwnerName, Owners, Resident, Timeline};
pub use warning::{Concerned, OtherCompiler, ReportWarning};
pub use work::{Sent, Work};
