//! A report's rows as CSV.

use super::Audited;
use std::io::{self, Write};

/// The columns, once for all files.
pub(super) const HEADER: &str = "source,module,instruction,shape_index,computation,opcode,shape,memory_space,logical_bytes,\
                                 physical_bytes,padding_bytes,expansion,cause,fix,op_name,file,line\n";

impl Audited {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        for buffer in self.listed(Self::LISTED) {
            let path: Vec<String> = buffer.shape_index.iter().map(usize::to_string).collect();
            let fix = buffer.advice(self.tpu).and_then(|advice| Some(advice.best()?.sentence.clone()));
            let (file, line) = buffer.source.as_ref().map(|source| (source.file.as_str(), source.line)).unzip();
            table.serialize((
                (&self.source, &self.report.module, &buffer.instruction, path.join("."), &buffer.computation),
                (&buffer.opcode, buffer.shape.to_string(), buffer.memory_space),
                (buffer.logical_bytes, buffer.physical_bytes, buffer.padding_bytes(), buffer.expansion()),
                (buffer.cause(), fix, &buffer.op_name, file, line),
            ))?;
        }
        table.flush()
    }
}
