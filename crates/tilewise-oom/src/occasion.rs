//! The occasion of a failure: the work of a job as its request failed.

use crate::traceback::Frame;

/// The work of a job as its request failed, where names in the text show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Occasion {
    /// Weights, or a state such as an optimizer's, are made: there is no batch yet.
    Weights,
    /// An array that one device makes whole is divided between devices.
    Division,
    /// Weights or a state are loaded.
    Load,
    /// An array is put into another sharding, or gathered whole.
    Move,
    /// An array of the host's is gathered from all processes to be compared, as it is put onto their devices.
    Gather,
    /// Weights of a trainer are put into a server's, as in reinforcement learning.
    Sync,
    /// CUDA graphs are captured.
    Capture,
    /// Weights or a state are gathered to be saved.
    Save,
    /// A model is evaluated.
    Evaluation,
    /// Outputs of the batches of an evaluation are joined.
    Collection,
    /// An optimizer of PyTorch's or Keras's updates the weights, and makes its state first.
    Update,
}

/// JAX's program that puts an array into another sharding.
pub(crate) const MOVES: &str = "_identity_fn";

/// JAX's functions that gather an array.
const GATHERS: [&str; 2] = ["process_allgather", "replicate_for_host_local"];

/// Words in the names of functions that load weights, whatever else is in them.
const LOADS: [&str; 3] = ["restore", "pretrained", "preset"];

/// Words in the names of functions that evaluate a model.
const EVALUATIONS: [&str; 4] = ["evaluate", "evaluation", "validation", "prediction"];

/// Words beside a verb of an evaluation: `eval` is one of Python's, and arguments are validated.
const PARTS: [&str; 7] = ["step", "epoch", "loop", "batch", "run", "compile", "loss"];

const VERBS: [&str; 6] = ["init", "initialize", "create", "make", "build", "setup"];

const NOUNS: [&str; 10] =
    ["state", "params", "parameters", "weights", "model", "checkpoint", "ckpt", "variables", "optimizer", "pytree"];

impl Occasion {
    /// The occasion that frames show, the innermost first.
    pub(crate) fn of<'a>(frames: impl IntoIterator<Item = &'a Frame>) -> Option<Self> {
        let frames: Vec<&Frame> = frames.into_iter().collect();
        // A function that initializes a sampler's state makes no weights.
        if frames.iter().filter_map(|frame| frame.code.as_deref()).any(makes_buffer) {
            return None;
        }
        let is_update = |frame: &&&Frame| frame.code.as_deref().is_some_and(|code| code.contains(".apply_gradients("));
        if frames.first().is_some_and(|frame| is_optimizer(&frame.file)) || frames.first().filter(is_update).is_some() {
            return Some(Self::Update);
        }
        let compares = frames.iter().any(|frame| frame.function == "assert_equal");
        let mut frames = frames.into_iter().peekable();
        let joins = frames.peek().and_then(|frame| frame.code.as_deref()).is_some_and(joins);
        let found = frames.find_map(|frame| {
            let code = || frame.code.as_deref().into_iter();
            if code().any(divides_what_it_makes) {
                return Some(Self::Division);
            }
            if code().any(initializes) || makes_layer(frame) {
                return Some(Self::Weights);
            }
            code()
                .flat_map(calls)
                .chain(code().flat_map(compiled))
                .chain([frame.function.as_str()])
                .find_map(Self::of_function)
                .or_else(|| Self::of_function(frame.stem()).filter(|work| *work == Self::Capture))
        });
        match found {
            Some(Self::Evaluation) if joins => Some(Self::Collection),
            Some(Self::Move) if compares => Some(Self::Gather),
            found => found,
        }
    }

    /// The occasion that the last lines of a log show.
    pub(crate) fn of_log(log: &str) -> Option<Self> {
        /// Lines that are looked at: the end of a process is logged by others, too.
        const LINES: usize = 40;
        const SIGNS: [(&str, Occasion); 10] = [
            ("aving checkpoint", Occasion::Save),
            ("async save", Occasion::Save),
            ("aving model", Occasion::Save),
            ("oading checkpoint", Occasion::Load),
            ("oading safetensors", Occasion::Load),
            ("oading weights", Occasion::Load),
            ("oading state", Occasion::Load),
            ("apturing cuda", Occasion::Capture),
            ("apturing CUDA", Occasion::Capture),
            ("apture cuda graph", Occasion::Capture),
        ];
        const ENDED: [&str; 2] = ["apturing finished", "cuda graph end"];
        let lines = log.lines().rev().take(LINES);
        let lines = lines.take_while(|line| !ENDED.iter().any(|sign| line.contains(sign)));
        let of_line = |line: &str| SIGNS.iter().find(|(sign, _)| line.contains(sign)).map(|(_, work)| *work);
        lines.into_iter().find_map(of_line)
    }

    /// A load that the last lines of a text call: `model = Model.from_preset('x')`.
    pub(crate) fn of_last_call(text: &str) -> Option<Self> {
        /// Lines between the call and a message.
        const LINES: usize = 3;
        let lines = text.lines().rev().map(str::trim).filter(|line| line.len() < 400 && !line.is_empty());
        let found = lines.take(LINES).find_map(|line| calls(line).find_map(Self::of_function));
        found.filter(|work| *work == Self::Load)
    }

    /// The occasion that a function's name shows, with its class: `TrainState.create`.
    fn of_function(path: &str) -> Option<Self> {
        let name = path.rsplit('.').next().unwrap_or(path);
        if GATHERS.iter().any(|gather| name.contains(gather)) {
            return Some(Self::Move);
        }
        let words = words(path);
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        if has(&["sync", "resync", "refit"]) && has(&NOUNS) {
            return Some(Self::Sync);
        }
        if has(&["graph", "graphs"]) && has(&["cuda", "capture"]) {
            return Some(Self::Capture);
        }
        if name.ends_with("state_dict") && !has(&["load", "set"]) || has(&["save"]) && has(&NOUNS) {
            return Some(Self::Save);
        }
        let evaluates = has(&EVALUATIONS) || name == "validate" || has(&["eval", "validate"]) && has(&PARTS);
        if evaluates && !has(&["save"]) {
            return Some(Self::Evaluation);
        }
        if has(&LOADS) || has(&["load", "loads", "deserialize"]) && has(&NOUNS) {
            return Some(Self::Load);
        }
        (name == "init" || has(&VERBS) && has(&NOUNS)).then_some(Self::Weights)
    }
}

/// The functions that a line calls, each with the class before it: a name of a variable tells nothing.
fn calls(code: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    code.match_indices('(').filter_map(move |(at, _)| {
        let start = code[..at]
            .rfind(|c| !is_part(c))
            .map_or(0, |before| before + code[before..].chars().next().map_or(1, char::len_utf8));
        let path = &code[start..at];
        let (owner, name) = path.rsplit_once('.').unwrap_or(("", path));
        let class = owner.rsplit('.').next().filter(|class| class.starts_with(char::is_uppercase));
        let from = class.map_or(path.len() - name.len(), |class| path.len() - name.len() - 1 - class.len());
        (!name.is_empty()).then(|| &path[from..])
    })
}

/// Whether a line puts an array on devices in the call that makes it: `jax.device_put(jnp.zeros(shape), sharding)`.
fn divides_what_it_makes(code: &str) -> bool {
    let argument = code.split_once("device_put(").map(|(_, behind)| behind.trim_start());
    argument.is_some_and(|argument| ["jnp.", "jax.numpy.", "jax.random."].iter().any(|name| argument.starts_with(name)))
}

/// Whether a line makes an array that is named after a buffer of samples: `logits_buffer = jnp.zeros(`.
fn makes_buffer(code: &str) -> bool {
    const BUFFERS: [&str; 4] = ["buffer", "cache", "logits", "samples"];
    const MAKERS: [&str; 4] = ["zeros(", "ones(", "empty(", "full("];
    let Some((target, made)) = code.split_once('=') else { return false };
    let is_buffer = words(target.trim()).iter().any(|word| BUFFERS.contains(&word.as_str()));
    is_buffer && MAKERS.iter().any(|maker| made.contains(maker))
}

/// Whether a line assigns to weights or a state what a function named after it makes: `self.state = self.init_xmap(key)`.
fn initializes(code: &str) -> bool {
    let Some((target, made)) = code.split_once('=') else { return false };
    let is_state = words(target.trim()).last().is_some_and(|word| NOUNS.contains(&word.as_str()));
    is_state && calls(made).any(|path| words(path).iter().any(|word| ["init", "initialize"].contains(&word.as_str())))
}

/// Whether a frame is Keras's method in which a layer makes its weights.
fn makes_layer(frame: &Frame) -> bool {
    frame.file.contains("keras") && frame.function.rsplit('.').next() == Some("build")
}

/// Whether a file is one of PyTorch's optimizers, which keep a state for each parameter.
fn is_optimizer(file: &str) -> bool {
    const OTHERS: [&str; 3] = ["lr_scheduler", "swa_utils", "lbfgs"];
    ["torch/optim/", "torch\\optim\\"].iter().any(|folder| file.contains(folder))
        && !OTHERS.iter().any(|other| file.contains(other))
}

/// Whether a line joins arrays: `torch.cat((old, new))`.
fn joins(code: &str) -> bool {
    const JOINS: [&str; 7] = ["cat", "concat", "concatenate", "stack", "vstack", "hstack", "nested_concat"];
    calls(code).any(|path| path.rsplit('.').next().is_some_and(|name| JOINS.contains(&name)))
}

/// The functions that a line compiles: `jax.pmap(updater.init)(key)`.
fn compiled(code: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    ["jit(", "pmap("].into_iter().filter_map(move |sign| {
        let (_, argument) = code.split_once(sign)?;
        let path = &argument[..argument.find(|c| !is_part(c)).unwrap_or(argument.len())];
        path.rsplit('.').next()
    })
}

/// The words of a name, in lower case: `init_train_state`, `TrainState.create`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let is_new = letter == '_' || letter == '.' || letter.is_uppercase() && was_lower;
        if is_new {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if letter.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_an_evaluation_joins() {
        let frame = |function: &str, code: &str| Frame {
            file: "a.py".to_owned(),
            line: 1,
            function: function.to_owned(),
            code: Some(code.to_owned()),
        };
        let joined = frame("add", "return torch.cat((old, new), dim=0)");
        let evaluated = frame("evaluation_loop", "all_preds.add(logits)");
        assert_eq!(Occasion::of(&[joined.clone(), evaluated.clone()]), Some(Occasion::Collection));
        assert_eq!(Occasion::of(&[evaluated]), Some(Occasion::Evaluation));
        assert_eq!(Occasion::of(&[joined]), None);
    }

    #[test]
    fn functions_that_make_weights() {
        let of = |code: &str| {
            let code = Some(code.to_owned());
            Occasion::of(&[Frame { file: "a.py".to_owned(), line: 1, function: "main".to_owned(), code }])
        };
        for code in [
            "state = init_train_state(config, rng)",
            "params = model.init(key, x)",
            "state = train_state.TrainState.create(apply_fn=f, params=p, tx=tx)",
            "state = jax.pmap(updater.init)(rng, data)",
            "self.state = self.init_xmap(jnp.array(key.take(n)), x)",
        ] {
            assert_eq!(of(code), Some(Occasion::Weights), "{code}");
        }
        assert_eq!(of("logits_buffer = jnp.zeros("), None);
        assert_eq!(of("x = multihost_utils.process_allgather(x)"), Some(Occasion::Move));
        assert_eq!(of("a = jax.device_put(jnp.zeros([n]), PositionalSharding(devices))"), Some(Occasion::Division));
        for code in
            ["return ckptr.restore(path, restore_args=args)", "model = Model.from_pretrained('x')", "self.load_model()"]
        {
            assert_eq!(of(code), Some(Occasion::Load), "{code}");
        }
        assert_eq!(of("loss = eval_step(state, batch)"), Some(Occasion::Evaluation));
        assert_eq!(of("trainer.compile_eval({"), Some(Occasion::Evaluation));
        for code in [
            "state = step(state, batch)",
            "out = jax.eval_shape(f, x)",
            "validate_args(args)",
            "batch = model.load_batch()",
            "jax.distributed.initialize()",
            "batch = jax.device_put(batch, sharding)",
            "((",
            "",
        ] {
            assert_eq!(of(code), None, "{code}");
        }
    }
}
