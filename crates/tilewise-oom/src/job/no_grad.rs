//! Code that runs a PyTorch model with gradients that nothing takes.

use super::SEARCHED;
use crate::text::tail;

/// Calls that switch gradients off.
const OFF: [&str; 3] = ["no_grad", "inference_mode", "set_grad_enabled"];

/// Signs that gradients are taken, or that a library switches them off itself: its trainers, generation and pipelines.
const OTHERS: [&str; 8] =
    [".backward(", "optimizer", "optim.", "Trainer", "training_step", ".generate(", "ipeline(", "Pipeline"];

/// Calls of a model.
const CALLS: [&str; 4] = ["(", ".forward(", ".decode(", ".encode("];

/// Whether code evaluates a model in a loop of its own, and doesn't switch gradients off.
pub(super) fn is_lacking_beside_eval(log: &str) -> bool {
    let log = tail(log, SEARCHED);
    let is_off = OFF.iter().chain(&["Trainer", "trainer"]).any(|sign| log.contains(sign));
    log.contains(".eval()") && log.contains("for ") && !is_off
}

/// Whether code loads a model and calls it, takes no gradient, and doesn't switch them off.
pub(super) fn is_lacking(log: &str) -> bool {
    let lines = || tail(log, SEARCHED).lines().map(str::trim_start).filter(|line| !line.starts_with('#'));
    let has = |sign: &str| lines().any(|line| line.contains(sign));
    if !has("import torch") || OFF.into_iter().chain(OTHERS).any(has) {
        return false;
    }
    let model = lines().find_map(|line| {
        let (name, made) = line.split_once('=')?;
        made.contains(".from_pretrained(").then_some(name.trim())
    });
    model.is_some_and(|name| !name.is_empty() && CALLS.iter().any(|call| has(&format!("= {name}{call}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_without_gradients() {
        let code = "import torch\nvae = VAE.from_pretrained('x')\nvae.to('cuda')\nx = vae.decode(y)[0]\n";
        assert!(is_lacking(code));
        for none in ["with torch.no_grad():", "loss.backward()", "pipeline(x)"] {
            assert!(!is_lacking(&[code, none].concat()), "{none}");
        }
    }
}
