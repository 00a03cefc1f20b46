//! What to change in a program, and why it has its copies: worked out together, since both look at what its caller passes.

use crate::{
    CopyReason, Recommendation, Report, copy_reasons::reasons, notes::notes, pricing::recommend,
    program_model::ProgramModel,
};

#[derive(Clone, Debug)]
pub(crate) struct Findings {
    advice: Vec<Recommendation>,
    notes: Vec<String>,
    copy_reasons: Vec<CopyReason>,
}

impl Findings {
    fn new(report: &Report) -> Self {
        match ProgramModel::new(report) {
            Some(program) => {
                // Layouts can be asked for where they have tiles.
                let layout_requests = report.machine.generation().map(|_| program.layout_requests());
                Self {
                    advice: recommend(&program),
                    notes: notes(&program),
                    copy_reasons: reasons(report, layout_requests),
                }
            }
            None => Self { advice: Vec::new(), notes: Vec::new(), copy_reasons: reasons(report, None) },
        }
    }
}

impl Report {
    /// What to change so that the program holds less, the best first; nothing for a module without plan.
    ///
    /// Each frees its bytes once those before it are done, so that all together free their sum: bytes by which arguments,
    /// results that don't lie in them, and temporaries together fall.
    ///
    /// ```
    /// use tilewise_audit::recommendation::Saving;
    ///
    /// let module = tilewise_hlo::Module::parse("\
    /// HloModule jit_f, is_scheduled=true
    ///
    /// ENTRY main (x.1: f32[524288,8]) -> f32[524288] {
    ///   x.1 = f32[524288,8]{1,0:T(8,128)} parameter(0), metadata={op_name=\"x\"}
    ///   ROOT r = f32[524288]{0:T(1024)} custom-call(x.1), custom_call_target=\"sum\"
    /// }")?;
    /// let report = tilewise_audit::audit(&module);
    /// let advice = report.advice();
    /// assert_eq!((advice[0].change.as_str(), advice[0].target.as_str()), ("order", "argument"));
    /// // 512 bytes a row, which could be 32.
    /// assert_eq!(advice[0].saving, Saving::Exact(524_288 * (512 - 32)));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn advice(&self) -> &[Recommendation] {
        &self.findings().advice
    }

    /// What fills the program's memory at its peak, by kind, the largest first, and what can be done about each: sentences
    /// without a full stop. None of it has a price: it changes what is computed, or where; nothing for a module without plan.
    ///
    /// ```
    /// let module = tilewise_hlo::Module::parse("\
    /// HloModule jit_f, is_scheduled=true
    ///
    /// ENTRY main {
    ///   w = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name=\"params['w']\"}
    ///   ROOT r = f32[1024]{0:T(1024)} custom-call(w), custom_call_target=\"rows\"
    /// }")?;
    /// let note = "Parameters: 4.00 MiB, 99 %, `params`. To hold less, hold them in bfloat16 or int8, or shard them over more \
    ///             devices";
    /// assert_eq!(tilewise_audit::audit(&module).notes(), [note]);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.findings().notes
    }

    /// Why each of [`copies`](Self::copies) is there, in their order.
    ///
    /// A fix is only given where the copy goes once the program is compiled again: nothing else reads the argument, the order is
    /// one of its own dimensions, and the program holds no more than before. Of very many only the largest are looked at.
    ///
    /// ```
    /// let module = tilewise_hlo::Module::parse("\
    /// HloModule jit_f, is_scheduled=true
    ///
    /// ENTRY main {
    ///   w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name=\"w\"}
    ///   c = f32[1024,1024]{1,0:T(8,128)} copy(w)
    ///   ROOT r = f32[1024]{0:T(1024)} custom-call(c), custom_call_target=\"rows\"
    /// }")?;
    /// let report = tilewise_audit::audit(&module);
    /// let reasons = report.copy_reasons();
    /// assert_eq!(reasons[0].why, "`w` (argument 0) is in {0,1:T(8,128)}, pinned by the caller; `r` reads it in {1,0:T(8,128)}");
    /// let snippet = reasons[0].fix.as_ref().and_then(|fix| fix.snippet.as_ref());
    /// let code = "w = jax.device_put(w, Format(Layout(major_to_minor=(0, 1)), w.sharding))";
    /// assert_eq!(snippet.map(|snippet| &*snippet.code), Some(code));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn copy_reasons(&self) -> &[CopyReason] {
        &self.findings().copy_reasons
    }

    fn findings(&self) -> &Findings {
        self.findings.get_or_init(|| Findings::new(self))
    }
}
