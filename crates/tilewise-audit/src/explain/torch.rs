//! Advice on PyTorch's own allocator, on servers that use it, and on the graphs of PyTorch/XLA.

use super::holders::holders;
use crate::advice::finding::{
    Asker,
    ElsewhereFinding::{self, *},
    WholeArray,
};
use tilewise_oom::{Done, Framework, ListedProcess, Message, Occasion, OomVerdict, PrintedSize, Run, Server};

/// A request of less than this part of a process's tensors is one of many: 1 in 8.
const MANY: u64 = 8;
/// Free pieces of less than this part of a process's tensors are always there: 1 in 16.
const PIECES: u64 = 16;
/// The CUDA context and libraries take less than this part of a GPU: 1 in 10.
const OF_LIBRARIES: u64 = 10;
/// Other processes that take less than this part of a GPU don't matter: 1 in 50.
const OF_OTHERS: u64 = 50;
/// Fewer positions than these are heads or features.
const POSITIONS: u64 = 1024;
/// Hundredths of a GPU's memory by which a server's part is lowered.
const STEP: u64 = 5;
/// Hundredths that are a server's part by default.
const USUAL: u64 = 90;
/// Fewer hundredths hold no model.
const LEAST: u64 = 10;

/// The figures of a message in bytes, as far as it has them.
struct Figures {
    asked: Option<u64>,
    /// The GPU's memory.
    all: Option<u64>,
    free: Option<u64>,
    /// Tensors of this process.
    held: Option<u64>,
    /// Free pieces that the allocator keeps.
    cached: Option<u64>,
    /// All memory of this process.
    own: Option<u64>,
}

impl Figures {
    fn of(message: &Message) -> Self {
        let fact = |name| message.facts.size(name).map(PrintedSize::bytes);
        // One process that is listed alone is this one.
        let only = match &message.job.processes[..] {
            [only] => Some(only.size.bytes()),
            _ => None,
        };
        Self {
            asked: message.used.as_ref().map(PrintedSize::bytes),
            all: message.capacity.as_ref().map(PrintedSize::bytes),
            free: fact("free"),
            held: fact("held"),
            cached: fact("cached"),
            own: fact("own").or(only),
        }
    }

    /// Bytes that this process has of the GPU, without libraries.
    fn allocated(&self) -> Option<u64> {
        Some(self.held?.saturating_add(self.cached.unwrap_or(0)))
    }

    /// Bytes that others hold, and whether these are more than the context and libraries take.
    fn others(&self) -> Option<(u64, bool)> {
        let all = self.all?;
        let (own, few) = match self.own {
            Some(own) => (own, all / OF_OTHERS),
            None => (self.allocated()?, all / OF_LIBRARIES),
        };
        let others = all.saturating_sub(self.free?).saturating_sub(own);
        Some((others, others > few))
    }

    /// Whether others hold most of what is taken: fewer samples don't free it.
    fn is_of_others(&self) -> bool {
        let taken = self.all.zip(self.free).map(|(all, free)| all.saturating_sub(free));
        taken.zip(self.allocated()).is_some_and(|(taken, own)| own < taken / 4)
    }

    /// Whether the free pieces are more than the few that are always there, and together enough for the request.
    fn are_pieces_enough(&self) -> bool {
        let is_much = self.cached.zip(self.held).is_none_or(|(cached, held)| cached > held / PIECES);
        let room = self.cached.zip(self.free).map(|(cached, free)| cached.saturating_add(free));
        let is_enough = self.asked.zip(room).is_none_or(|(asked, room)| room >= asked);
        self.cached.is_some_and(|cached| cached > 0) && is_much && is_enough
    }
}

/// Findings on an error of PyTorch's.
pub(super) fn findings(message: &Message) -> Vec<ElsewhereFinding> {
    if let Some(rank) = message.job.rank_on_first {
        return vec![TorchRank(rank)];
    }
    if message.facts.get("communicator").is_some() {
        // Before the first step there is no cache yet.
        let is_cached = message.job.has_run || message.occasion() == Some(Occasion::Save);
        return if is_cached { vec![TorchCache] } else { vec![TorchProcesses(None)] };
    }
    let figures = Figures::of(message);
    let less = less(message, &figures);
    let is_most = figures.cached.zip(figures.asked).is_some_and(|(cached, asked)| cached >= asked);
    let is_joined = figures.are_pieces_enough() && !message.job.done.contains(&Done::ExpandableSegments);
    // A server sizes its cache by what is free: pieces are what is left of that.
    let joined = Some(TorchFragmented).filter(|_| is_joined && (is_most || message.server.is_none()));
    // A cause that the text shows needs no look.
    let is_unsure = matches!(
        less,
        TorchLess { .. } | TorchCheckpoint | TorchGrowth | Whole(WholeArray::Unknown) | ServerPrograms { .. }
    );
    let processes = processes(message, &figures).filter(|found| is_unsure || !matches!(found, Holders(_)));
    let beside = beside(message, &figures);
    // A server fills what it is given; saves, collections and an optimizer's update ask for much in small pieces.
    let is_of_work = message.server.is_some() || matches!(less, OptimizerState | TorchSave { .. } | TorchCollection);
    let is_small = message.cause() == Some(OomVerdict::Reservation) && !is_of_work;
    let order = match () {
        () if beside.is_some() => [beside, processes, None],
        () if message.job.names.pool == Some(Framework::Jax)
            && message.job.pool.preallocates == Some(false)
            && figures.others().is_none_or(|(_, are_many)| are_many) =>
        {
            [Some(PoolBeside { of: Framework::Jax, gives_nothing_back: true }), None, None]
        }
        () if is_small || figures.is_of_others() => [
            message.job.names.pool.map(|of| PoolBeside { of, gives_nothing_back: false }).or(processes),
            Some(less),
            None,
        ],
        () if is_most && !message.job.grows && !matches!(less, ServerPrograms { is_capture: true, .. }) => {
            [joined, Some(less), processes]
        }
        // Without figures the look tells whether less at once helps.
        () if matches!((&less, &processes), (TorchLess { run: None, .. }, Some(Holders(_)))) => {
            [processes, Some(less), None]
        }
        () => [Some(less), joined, processes],
    };
    order.into_iter().flatten().collect()
}

/// The finding on what this process itself asks for.
fn less(message: &Message, figures: &Figures) -> ElsewhereFinding {
    // No backward pass follows an evaluation.
    let is_evaluated = message.occasion() == Some(Occasion::Evaluation);
    let is_of_weights =
        matches!(message.occasion(), Some(Occasion::Load | Occasion::Weights | Occasion::Update | Occasion::Save));
    let run = if is_evaluated { Some(Run::Inference) } else { message.job.run };
    let is_of_many = figures.asked.zip(figures.held).is_some_and(|(asked, held)| asked < held / MANY);
    match (message.server, run) {
        _ if message.occasion() == Some(Occasion::Save) => {
            TorchSave { is_fsdp1: message.job.names.fsdp1, is_of_adapters: message.job.names.adapters }
        }
        _ if message.occasion() == Some(Occasion::Collection) => TorchCollection,
        // The state is made in the first step.
        _ if message.occasion() == Some(Occasion::Update) && !message.job.has_run => OptimizerState,
        // Of a server the longest request alone makes as much.
        (Some(server), _) if figures.asked.zip(figures.all).is_some_and(|(asked, all)| asked > all) => {
            ServerLength(server)
        }
        _ if !is_of_weights
            && (message.job.lacks_no_grad || is_evaluated && message.job.evaluates_with_grad)
            && message.server.is_none() =>
        {
            NoGradients
        }
        // One array that fills a quarter of a device isn't what layers keep.
        _ if message.asks_for_a_quarter() => Whole(whole_array(message)),
        _ if message.job.grows => TorchGrowth,
        (Some(server), _) => {
            // Graphs lie beside what a server counted.
            let graphs = message.facts.size("graphs").map(PrintedSize::bytes).zip(figures.asked);
            let are_graphs = graphs.is_some_and(|(graphs, asked)| graphs >= asked);
            let lower = |now: u64| [now, now.saturating_sub(STEP).min(USUAL)];
            let percents = message.job.serving.memory_percent.map(lower).filter(|[_, percent]| *percent >= LEAST);
            ServerPrograms { server, is_capture: are_graphs || message.occasion() == Some(Occasion::Capture), percents }
        }
        // A part of a pool is a product by chance sooner.
        _ if message.product.is_some() && !is_of_many => Whole(whole_array(message)),
        // Each training step makes them, however much else is held.
        _ if !is_of_weights && message.product.as_ref().is_some_and(|product| product.family.is_some()) => {
            Whole(WholeArray::Logits)
        }
        (None, Some(Run::Training)) if !message.job.done.contains(&Done::Recomputed) => TorchCheckpoint,
        (None, run) => {
            // Batches that ran before needed as much.
            let is_last_of_many = is_of_many || message.job.has_run;
            TorchLess { run, is_last_of_many: run != Some(Run::Training) && is_last_of_many }
        }
    }
}

/// The finding that other processes hold memory, unless the figures rule that out.
fn processes(message: &Message, figures: &Figures) -> Option<ElsewhereFinding> {
    // Apple's GPUs have no such tool, and their memory is the host's.
    let is_of_apple = message.quote.as_ref().is_some_and(|quote| quote.contains("MPS backend"));
    // No other process would leave room for more than there is.
    let is_possible = match (figures.all, figures.asked) {
        (Some(all), Some(asked)) => asked <= all,
        _ => !message.asks_for_a_quarter(),
    };
    let others = figures.others();
    let is_other = |other: &&ListedProcess| others.is_some_and(|(bytes, _)| other.size.bytes() <= bytes);
    let largest = message.job.processes.iter().filter(is_other).max_by_key(|other| other.size.bytes()).cloned();
    let finding = match largest {
        None if message.job.lists_no_process => TorchHidden,
        None if others.is_none() => Holders(holders(message, false)),
        largest => TorchProcesses(largest),
    };
    let is_possible = is_possible && finding != Holders(<_>::default());
    Some(finding).filter(|_| is_possible && others.map_or(!is_of_apple, |(_, are_many)| are_many))
}

/// The finding that a server counts memory of others as its own: of those whose flag is a part of the whole memory.
fn beside(message: &Message, figures: &Figures) -> Option<ElsewhereFinding> {
    let server = message.server.filter(|server| matches!(server, Server::Vllm | Server::TextGeneration))?;
    let (others, are_many) = figures.others()?;
    let all = figures.all?;
    let percent = all.saturating_sub(others).saturating_mul(100).checked_div(all)?.saturating_sub(STEP);
    let is_lower = percent >= LEAST && message.job.serving.memory_percent.is_none_or(|now| percent < now);
    (are_many && is_lower).then_some(ServerBeside { server, others, percent })
}

/// The contents of one large array that PyTorch asks for.
fn whole_array(message: &Message) -> WholeArray {
    let line = message.requested_at.as_ref().or(message.raised_at.as_ref());
    let names = line.into_iter().flat_map(|frame| [Some(frame.function.as_str()), frame.code.as_deref()]);
    if names.flatten().any(|name| ["attention", "attn", "sdpa"].iter().any(|sign| name.contains(sign))) {
        return WholeArray::Scores;
    }
    // Sizes of which two are equal are those of pairs of positions.
    let are_pairs = message
        .product
        .as_ref()
        .is_some_and(|product| product.factors.windows(2).any(|pair| pair[0] == pair[1] && pair[0] >= POSITIONS));
    if are_pairs && message.named.attention {
        return WholeArray::Scores;
    }
    let are_logits = message.product.as_ref().is_some_and(|product| product.family.is_some());
    if are_logits || line.and_then(|frame| frame.code.as_deref()).is_some_and(|code| code.contains("logits")) {
        return WholeArray::Logits;
    }
    // A printed number of parameters has three digits.
    let is_close = |bytes: u64, asked: u64| bytes.abs_diff(asked) <= asked / 100;
    let parameters = message.job.model.zip(message.used.as_ref()).filter(|(model, asked)| {
        [2, 4].iter().any(|each| is_close(model.parameters.saturating_mul(*each), asked.bytes()))
    });
    let parameters = parameters.map(|(model, _)| WholeArray::Parameters(model.parameters));
    let of_sizes = || message.product.as_ref().map(|product| WholeArray::of_sizes(product, message.job.names));
    parameters.or_else(of_sizes).unwrap_or(WholeArray::Unknown)
}

/// Whether nothing in a text of PyTorch/XLA's cuts the graph: a loop runs all its steps as one program.
pub(super) fn leaves_graph_uncut(message: &Message) -> bool {
    message.framework == Some(Framework::TorchXla)
        && !message.job.done.contains(&Done::CutGraph)
        && Asker::of_weights(message).is_none()
}
