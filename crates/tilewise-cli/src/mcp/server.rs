//! The tools by name, with the schemas of their arguments.

use super::{
    Answer,
    compiler::{self, Change, Search},
    messages::{self, MessageArguments},
    programs::{self, Moment, Pair, Program, Query},
    resources,
    shapes::{self, Bitcast, Predict, Shapes},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{
        CallToolResult, Implementation, ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    tool, tool_handler, tool_router,
};
use serde_json::json;

const INSTRUCTIONS: &str = "\
What holds the memory of TPU, GPU and CPU programs compiled by XLA (JAX, TensorFlow, PyTorch/XLA), and what to change. \
A job died: give its message to `explain`. There is the program's optimized HLO (compiled.as_text(), --xla_dump_to): \
give it to `audit`; then `what_is_alive` and `find_buffers` say more. Before and after a change: `diff_programs`, or \
`check_change`, which compiles. Each answer names what to ask next.";

#[derive(Clone)]
pub(super) struct Server {
    tool_router: ToolRouter<Self>,
}

/// The answer as the protocol has it. The work may take a second, in which other requests are answered.
async fn answered(work: impl FnOnce() -> Answer + Send + 'static) -> CallToolResult {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(answer)) => CallToolResult::structured(answer),
        Ok(Err(failure)) => CallToolResult::structured_error(json!({ "error": failure })),
        Err(error) => {
            CallToolResult::structured_error(json!({ "error": { "kind": "internal", "message": error.to_string() } }))
        }
    }
}

#[tool_router]
impl Server {
    pub(super) fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(
        description = "What a compiled program holds in memory at its peak, whether that fits, which lines own it, and what to change, priced at the peak.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn audit(&self, Parameters(program): Parameters<Program>) -> CallToolResult {
        answered(move || programs::audit(&program)).await
    }

    #[tool(
        description = "What an out-of-memory message (RESOURCE_EXHAUSTED, a log, a traceback) says: what ran out, the cause, what fills the memory, what to do. Also explains an error code such as E1001, or a kind of advice such as donate.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn explain(&self, Parameters(message): Parameters<MessageArguments>) -> CallToolResult {
        answered(move || messages::explain(&message)).await
    }

    #[tool(
        description = "What shapes with layouts mean, such as bf16[300,500]{1,0:T(8,128)(2,1)}: tiles, bytes of data, bytes taken, padding and its cause.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn show(&self, Parameters(shapes): Parameters<Shapes>) -> CallToolResult {
        answered(move || shapes::show(&shapes)).await
    }

    #[tool(
        description = "The layout that a TPU generation picks for an array, and the memory it then takes.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn predict(&self, Parameters(arguments): Parameters<Predict>) -> CallToolResult {
        answered(move || shapes::predict(&arguments)).await
    }

    #[tool(
        description = "Whether the bytes of one array can be read as another without moving (a free reshape or transpose).",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn bitcast(&self, Parameters(arguments): Parameters<Bitcast>) -> CallToolResult {
        answered(move || shapes::bitcast(&arguments)).await
    }

    #[tool(
        description = "What is alive at one moment of a program, the largest first; at the peak if no step is named.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn what_is_alive(&self, Parameters(moment): Parameters<Moment>) -> CallToolResult {
        answered(move || programs::what_is_alive(&moment)).await
    }

    #[tool(
        description = "The arrays of a program whose instruction, shape, op_name or source line contains a text: how large they are, and when they are alive.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn find_buffers(&self, Parameters(query): Parameters<Query>) -> CallToolResult {
        answered(move || programs::find_buffers(&query)).await
    }

    #[tool(
        description = "How the memory of two compiled programs differs, such as before and after a change.",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn diff_programs(&self, Parameters(pair): Parameters<Pair>) -> CallToolResult {
        answered(move || programs::diff(&pair)).await
    }

    #[tool(
        description = "The largest batch or sequence that fits a TPU, asked of the compiler, with no TPU (needs the Python package with libtpu). Takes seconds to minutes.",
        annotations(read_only_hint = true, open_world_hint = true)
    )]
    async fn fit(&self, Parameters(search): Parameters<Search>) -> CallToolResult {
        answered(move || compiler::fit(&search)).await
    }

    #[tool(
        description = "Whether a change lowers the peak: compiles the program before and after it for a TPU, with no TPU, and compares (needs the Python package with libtpu).",
        annotations(read_only_hint = true, open_world_hint = true)
    )]
    async fn check_change(&self, Parameters(change): Parameters<Change>) -> CallToolResult {
        answered(move || compiler::check_change(&change)).await
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let implementation = Implementation::new("tilewise", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(INSTRUCTIONS)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::all()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri)
            .map(Into::into)
            .ok_or_else(|| ErrorData::resource_not_found(format!("no resource {}", request.uri), None))
    }
}
