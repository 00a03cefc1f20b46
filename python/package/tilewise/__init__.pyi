# The names of the package: checkers of types read this, and so does `__init__.py`, which imports each when it is asked for.
from tilewise import fleet as fleet
from tilewise import kernels as kernels
from tilewise import testing as testing
from tilewise._audit.audit import audit
from tilewise._audit.comparison import Change, ComparedProgram, Comparison, Owner, check_fix
from tilewise._audit.machines import Machines, OnMachine, compare_machines
from tilewise._audit.time import Time, TimeGroup, TimeRow
from tilewise._audit.together import (
    Alternative,
    LoadedProgram,
    PageArrays,
    ResidentArray,
    Together,
    audit_together,
)
from tilewise._base.equation import equation
from tilewise._base.errors import (
    DrawError,
    Error,
    HloError,
    MessageError,
    NotATpuProgram,
    OutOfRangeError,
    ParseError,
    RelayoutError,
    ShapeError,
    Skip,
)
from tilewise._base.files import clear_cache
from tilewise._compiler.compile import compile_for
from tilewise._explain import OomExplainer, explain, explain_oom
from tilewise._fit.advice import AdviceCheck, CheckedAdvice
from tilewise._fit.result import Fit
from tilewise._fit.rows import FitRow
from tilewise._fit.run import fit, fit_row
from tilewise._jax.layouts import from_jax, to_jax
from tilewise._jax.live import Live, LiveDevice, LiveRow, live
from tilewise._jax.topologies import mesh
from tilewise._jax.tree import TreeLeaf, TreePrediction, predict_tree
from tilewise._kernel.blocks import BlockSuggestions, SuggestedBlocks, suggest_blocks
from tilewise._kernel.budgets import KernelBudgets, kernel_budget
from tilewise._microbatch import microbatch
from tilewise._remat import remat
from tilewise._remat.result import Remat
from tilewise._remat.tried import RematRow
from tilewise._remat.values import RematValue
from tilewise._tilewise import (
    CHECKED_WITH,
    TPU_GENERATIONS,
    Allocation,
    BoundaryChange,
    Buffer,
    Cause,
    Copy,
    Drawing,
    ElementType,
    Explanation,
    Headline,
    KernelArray,
    KernelUse,
    Layout,
    PeakBuffer,
    PlannedChange,
    ProgramShape,
    Recommendation,
    Relation,
    Remedy,
    Report,
    ReportWarning,
    Row,
    Shape,
    SourceLine,
    SpaceTotal,
    Step,
    Steps,
    Table,
    __version__,
    free_reshapes,
    hbm_bytes,
    predict,
    relayout,
    reshard,
    tile,
    untile,
)
from tilewise.kernels import KernelBudget, KernelRow

__all__ = [
    "CHECKED_WITH",
    "TPU_GENERATIONS",
    "AdviceCheck",
    "Allocation",
    "Alternative",
    "BlockSuggestions",
    "BoundaryChange",
    "Buffer",
    "Cause",
    "Change",
    "CheckedAdvice",
    "ComparedProgram",
    "Comparison",
    "Copy",
    "DrawError",
    "Drawing",
    "ElementType",
    "Error",
    "Explanation",
    "Fit",
    "FitRow",
    "Headline",
    "HloError",
    "KernelArray",
    "KernelBudget",
    "KernelBudgets",
    "KernelRow",
    "KernelUse",
    "Layout",
    "Live",
    "LiveDevice",
    "LiveRow",
    "LoadedProgram",
    "Machines",
    "MessageError",
    "NotATpuProgram",
    "OnMachine",
    "OomExplainer",
    "OutOfRangeError",
    "Owner",
    "PageArrays",
    "ParseError",
    "PeakBuffer",
    "PlannedChange",
    "ProgramShape",
    "Recommendation",
    "Relation",
    "RelayoutError",
    "Remat",
    "RematRow",
    "RematValue",
    "Remedy",
    "Report",
    "ReportWarning",
    "ResidentArray",
    "Row",
    "Shape",
    "ShapeError",
    "Skip",
    "SourceLine",
    "SpaceTotal",
    "Step",
    "Steps",
    "SuggestedBlocks",
    "Table",
    "Time",
    "TimeGroup",
    "TimeRow",
    "Together",
    "TreeLeaf",
    "TreePrediction",
    "__version__",
    "audit",
    "audit_together",
    "check_fix",
    "clear_cache",
    "compare_machines",
    "compile_for",
    "equation",
    "explain",
    "explain_oom",
    "fit",
    "fit_row",
    "free_reshapes",
    "from_jax",
    "hbm_bytes",
    "kernel_budget",
    "live",
    "mesh",
    "microbatch",
    "predict",
    "predict_tree",
    "relayout",
    "remat",
    "reshard",
    "suggest_blocks",
    "tile",
    "to_jax",
    "untile",
]
