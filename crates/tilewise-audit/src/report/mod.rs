//! What a program holds, when and where: the report of an audit, and what differs between two.

mod agreement;
mod audit;
mod buffers;
mod diff;
mod kernels;
mod passes;
mod peak;
mod plan_row;
mod sections;
mod timeline;
mod view;
mod work;

pub use agreement::Agreement;
pub use audit::{AuditOptions, audit, audit_with};
pub use diff::{CopyChange, Diff, OwnerChange};
pub use kernels::KernelRow;
pub use peak::{PeakRow, SpacePeak};
pub use plan_row::{PlanPiece, PlanRow};
pub use sections::{BufferRow, MemoryBounds, Report, SpaceTotal, Warning};
pub use timeline::{Owners, Pass, Resident, Timeline, TimelinePiece};
pub use view::{ReportView, ViewOptions};
pub use work::Work;
