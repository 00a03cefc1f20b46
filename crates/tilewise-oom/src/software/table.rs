//! The table of software and its options: of each, the ones that free most without other results first. The line above an
//! option is its source: a repository and a file of it, or an answer by its maintainers.

use super::{Software, SoftwareOption};

const DEVICE: [bool; 2] = [true, false];
const HOST: [bool; 2] = [false, true];
const ANY: [bool; 2] = [true, true];

const fn option(
    [of_device, of_host]: [bool; 2],
    change: &'static str,
    effect: &'static str,
    keeps_results: bool,
) -> SoftwareOption {
    SoftwareOption { software: "", of_device, of_host, change, effect, keeps_results }
}

pub(super) const SOFTWARE: [Software; 34] = [
    Software {
        name: "keypoint-MoSeq",
        signs: &[
            "keypoint_moseq/",
            "keypoint_moseq.",
            "import keypoint_moseq",
            "jax_moseq/",
            "jax_moseq.",
            "kpms.fit_model",
            "kpms.apply_model",
        ],
        options: &[
            // dattalab/keypoint-moseq docs/source/FAQs.rst
            option(
                DEVICE,
                "Split data before fitting: `from jax_moseq.utils import set_mixed_map_iters; set_mixed_map_iters(4)`",
                "Data is processed in 4 batches one after the other, about 4 times less memory and 4 times slower",
                true,
            ),
            // dattalab/keypoint-moseq docs/source/FAQs.rst
            option(
                DEVICE,
                "Pass `parallel_message_passing=False` to `kpms.fit_model` or `kpms.apply_model`",
                "Message passing runs serially, 2-5x less memory and slower by a similar factor",
                true,
            ),
            // dattalab/keypoint-moseq docs/source/FAQs.rst
            option(
                DEVICE,
                "Split over GPUs before fitting: `from jax_moseq.utils import set_mixed_map_gpus; set_mixed_map_gpus(2)`",
                "The computation is divided over several GPUs, each holds a part",
                true,
            ),
            // dattalab/keypoint-moseq docs/source/FAQs.rst
            option(
                DEVICE,
                "Switch to single precision after import: `jax.config.update('jax_enable_x64', False)`",
                "Arrays are float32 instead of float64",
                true,
            ),
        ],
    },
    Software {
        name: "AlphaFold 3",
        signs: &[
            "alphafold3/",
            "alphafold3.model",
            "alphafold3.data",
            "import alphafold3",
            "--num_diffusion_samples",
            "--flash_attention_implementation",
        ],
        options: &[
            // google-deepmind/alphafold3 docs/performance.md
            option(
                DEVICE,
                "Lower shard sizes in `pair_transition_shard_spec` in `model_config.py`",
                "The pair transition runs in chunks (for example 512 tokens), lower throughput; with unified memory 4,352 tokens on an A100 40 GB",
                true,
            ),
            // google-deepmind/alphafold3 docs/performance.md
            option(
                DEVICE,
                "Add a bucket just above your token count: `--buckets 256,...,5376`",
                "The input is padded to fewer tokens; costs one more compilation",
                true,
            ),
            // google-deepmind/alphafold3 docs/performance.md
            option(
                HOST,
                "Run the MSA stage alone with `--run_inference=false`, then `--run_data_pipeline=false`",
                "The stage that needs much RAM runs by itself, on a machine with more RAM",
                true,
            ),
        ],
    },
    Software {
        name: "ColabFold",
        signs: &[
            "colabfold/",
            "ColabFold/blob",
            "colabfold_batch",
            "colabfold.batch",
            "localcolabfold",
            "colabfold-conda",
        ],
        options: &[
            // sokrypton/ColabFold colabfold/batch.py
            option(
                DEVICE,
                "Lower the MSA size, for example `--max-msa 256:512`",
                "Fewer MSA clusters and extra sequences are fed to the model",
                false,
            ),
        ],
    },
    Software {
        name: "BindCraft",
        signs: &["bindcraft.py", "BindCraft/", "bindcraft_functions", "functions/colabdesign_utils.py"],
        options: &[
            // https://github.com/martinpacesa/BindCraft/issues/225
            option(
                DEVICE,
                "Shorten the binder: lower `\"lengths\"` in the target settings",
                "Memory grows with target plus binder residues",
                false,
            ),
        ],
    },
    Software {
        name: "AlphaFold 2",
        signs: &[
            "docker/run_docker.py",
            "run_docker.py --fasta_paths",
            "--model_preset=",
            "--db_preset=",
            "run_alphafold.sh",
            "--uniref90_database_path=",
            "alphafold/relax/relax.py",
        ],
        options: &[
            // google-deepmind/alphafold README.md
            option(
                HOST,
                "Search the smaller database: `--db_preset=reduced_dbs`",
                "The genetic search uses a reduced BFD and needs 8 GB of RAM",
                false,
            ),
        ],
    },
    Software {
        name: "GraphCast and GenCast",
        signs: &[
            "rollout.chunked_prediction",
            "GenCast",
            "graphcast/rollout.py",
            "graphcast/autoregressive.py",
            "graphcast/graphcast.py",
            "graphcast/gencast.py",
            "graphcast/xarray_jax.py",
            "from graphcast import",
            "weathernext/",
            "gencast_mini_demo",
            "gencast_demo_cloud_vm",
            "dm_graphcast",
        ],
        options: &[
            // google-deepmind/graphcast graphcast/autoregressive.py
            option(
                DEVICE,
                "Wrap for training: `autoregressive.Predictor(predictor, gradient_checkpointing=True)`",
                "Activations of each autoregressive step are recomputed in the backward pass",
                true,
            ),
            // google-deepmind/graphcast graphcast/rollout.py
            option(
                DEVICE,
                "Roll out a one-step model with `rollout.chunked_prediction(..., num_steps_per_chunk=1)`",
                "Each step goes to the host; `autoregressive.Predictor` keeps the whole trajectory on the device",
                true,
            ),
            // google-deepmind/graphcast graphcast/rollout.py
            option(
                HOST,
                "Iterate `rollout.chunked_prediction_generator` and save each chunk",
                "The forecast is not concatenated in memory; each chunk can be written and dropped",
                true,
            ),
            // google-deepmind/graphcast docs/cloud_vm_setup.md
            option(
                ANY,
                "Use the 1 degree model: `GenCast 1p0deg <2019.npz`",
                "21 GB of host RAM and 8 GB of HBM instead of 250 GB and 32 GB",
                false,
            ),
        ],
    },
    Software {
        name: "MaxText",
        signs: &[
            "MaxText/",
            "src/MaxText",
            "maxtext/src",
            "MaxText.train",
            "maxtext.trainers",
            "maxtext/configs/base.yml",
            "MaxText/configs/base.yml",
        ],
        options: &[
            // AI-Hypercomputer/maxtext src/MaxText/configs/base.yml
            option(
                DEVICE,
                "Recompute all activations: `remat_policy=full`",
                "Fewest activations are kept for the backward pass; slowest policy",
                true,
            ),
            // AI-Hypercomputer/maxtext docs/guides/optimization/custom_model.md
            option(
                DEVICE,
                "Offload layer inputs to host: `remat_policy=custom decoder_layer_input=offload`",
                "The saved layer inputs live in host memory",
                true,
            ),
            // AI-Hypercomputer/maxtext src/MaxText/configs/base.yml
            option(
                DEVICE,
                "Compute the loss in pieces: `num_vocab_tiling=4` (or more)",
                "Logits exist for one part of the tokens at a time",
                true,
            ),
            // AI-Hypercomputer/maxtext docs/guides/optimization/custom_model.md
            option(
                DEVICE,
                "Shard layers further: raise `ici_tensor_parallelism` or, for MoE, `ici_expert_parallelism`",
                "One layer's weights need not fit on one chip, as pure FSDP requires",
                true,
            ),
            // AI-Hypercomputer/maxtext src/MaxText/configs/base.yml
            option(
                HOST,
                "Lower `grain_prefetch_buffer_size` and `grain_num_threads`",
                "Fewer records are read ahead per worker and per dataset",
                true,
            ),
        ],
    },
    Software {
        name: "torchprime",
        signs: &["torchprime/", "torchprime.", "torch_xla_models/train.py"],
        options: &[
            // AI-Hypercomputer/torchprime torchprime/torch_xla_models/README.md
            option(
                DEVICE,
                "Offload activations to host: `model/remat=llama-scan-offload`",
                "Layer activations are checkpointed and moved to host memory",
                true,
            ),
            // AI-Hypercomputer/torchprime torchprime/torch_xla_models/README.md
            option(DEVICE, "Shorten sequences: `data.block_size=1024`", "Shorter sequences, fewer activations", false),
        ],
    },
    Software {
        name: "T5X",
        signs: &["t5x/", "t5x.train", "t5x.partitioning", "t5x/train.py", "t5x.trainer"],
        options: &[
            // google-research/t5x docs/usage/partitioning.md
            option(
                DEVICE,
                "Raise model parallelism: `partitioning.PjitPartitioner.num_partitions = 2` (or more)",
                "Parameters and activations are split over more devices",
                true,
            ),
            // google-research/t5x docs/usage/partitioning.md
            option(
                DEVICE,
                "Shard parameters in two dimensions: `parameter_partitioning_dims = 2`, `activation_partitioning_dims = 2`",
                "Weights and activations are also split over the data axis (ZeRO-3 like)",
                true,
            ),
        ],
    },
    Software {
        name: "PyTorch/XLA's FSDP",
        signs: &["torch_xla/distributed/fsdp", "torch_xla.distributed.fsdp", "XlaFullyShardedDataParallel"],
        options: &[
            // pytorch/xla docs/fsdp.md
            option(
                DEVICE,
                "Wrap inner modules: `auto_wrap_policy=` with `reshard_after_forward=True` (ZeRO-3)",
                "Full parameters of only one wrapped submodule are held at a time",
                true,
            ),
            // pytorch/xla docs/fsdp.md
            option(
                DEVICE,
                "Add gradient checkpointing: `XlaFullyShardedDataParallel(checkpoint_module(m))`",
                "Activations inside each wrapped module are recomputed in the backward pass",
                true,
            ),
            // pytorch/xla docs/fsdp.md
            option(
                HOST,
                "Wrap each submodule in FSDP while building the model",
                "The whole unsharded model never exists in host memory",
                true,
            ),
        ],
    },
    Software {
        name: "DALL-E mini",
        signs: &["dalle_mini/", "dalle-mini", "dalle_mini.model", "DalleBart"],
        options: &[
            // borisdayma/dalle-mini tools/train/train.py
            option(
                DEVICE,
                "Train with `--gradient_checkpointing`",
                "Activations are recomputed in the backward pass",
                true,
            ),
            // borisdayma/dalle-mini tools/train/train.py
            option(
                DEVICE,
                "Quantize Distributed Shampoo state: `--optim_quantized`",
                "Optimizer state is stored in fewer bits",
                false,
            ),
        ],
    },
    Software {
        name: "Whisper JAX",
        signs: &["whisper_jax/", "whisper_jax.", "whisper-jax", "FlaxWhisperPipline"],
        options: &[
            // sanchit-gandhi/whisper-jax README.md
            option(
                DEVICE,
                "Use half precision: `FlaxWhisperPipline(\"openai/whisper-large-v2\", dtype=jnp.bfloat16)`",
                "Intermediate tensors are stored in 16 bits",
                true,
            ),
        ],
    },
    Software {
        name: "openpi",
        signs: &[
            "openpi/",
            "openpi.training",
            "openpi.models",
            "scripts/train.py pi0",
            "pi05_libero",
            "pi0_fast_",
            "droid_rlds_dataset",
        ],
        options: &[
            // Physical-Intelligence/openpi README.md
            option(
                DEVICE,
                "Shard the model: `--fsdp-devices <n>` with your number of GPUs",
                "Parameters and optimizer state are split over the GPUs; slower",
                true,
            ),
            // Physical-Intelligence/openpi README.md
            option(
                DEVICE,
                "Turn off EMA: `ema_decay=None` in the `TrainConfig`",
                "No second copy of the weights is kept",
                false,
            ),
            // Physical-Intelligence/openpi src/openpi/training/config.py
            option(
                DEVICE,
                "Fine-tune with LoRA: config `pi0_libero_low_mem_finetune` or `paligemma_variant=\"gemma_2b_lora\"`",
                "Only low-rank adapters have gradients and optimizer state",
                false,
            ),
            // Physical-Intelligence/openpi src/openpi/training/droid_rlds_dataset.py
            option(
                HOST,
                "Lower `shuffle_buffer_size` (default 250_000) of `DroidRldsDataset`",
                "Fewer frames wait in the shuffle buffer in RAM",
                false,
            ),
        ],
    },
    Software {
        name: "NumPyro",
        signs: &["numpyro/", "import numpyro", "numpyro.infer", "numpyro/infer/mcmc.py"],
        options: &[
            // pyro-ppl/numpyro numpyro/infer/mcmc.py
            option(
                DEVICE,
                "Run chains in turn, not vectorized: `MCMC(..., chain_method=\"sequential\")`",
                "One chain is on the device at a time, instead of all chains vectorized",
                true,
            ),
            // pyro-ppl/numpyro numpyro/infer/mcmc.py
            option(
                DEVICE,
                "Keep fewer draws: `MCMC(..., thinning=2)`",
                "Only every n-th draw is stored; the collection is num_samples // thinning long",
                false,
            ),
            // pyro-ppl/numpyro numpyro/infer/mcmc.py
            option(
                DEVICE,
                "Draw in pieces: `mcmc.post_warmup_state = mcmc.last_state`, then `mcmc.run` again",
                "Only one piece of the samples is on the device; move each to the host",
                false,
            ),
        ],
    },
    Software {
        name: "PyMC's JAX samplers",
        signs: &["pymc/sampling/jax.py", "pymc.sampling.jax", "sample_numpyro_nuts", "sample_blackjax_nuts"],
        options: &[
            // pymc-devs/pymc pymc/sampling/jax.py
            option(
                DEVICE,
                "Transform draws on the host: `sample_numpyro_nuts(postprocessing_backend=\"cpu\")`",
                "The transformation of draws and the log likelihood use host memory, not the GPU",
                true,
            ),
            // pymc-devs/pymc pymc/sampling/jax.py
            option(
                DEVICE,
                "Transform draws in turn: `sample_numpyro_nuts(postprocessing_vectorize=\"scan\")`",
                "Draws are transformed one after another, not all at once (argument to be removed in a future release)",
                true,
            ),
        ],
    },
    Software {
        name: "NetKet",
        signs: &["netket/", "import netket", "nk.vqs.MCState", "netket.vqs"],
        options: &[
            // netket/netket netket/vqs/mc/mc_state/state.py
            option(
                DEVICE,
                "Evaluate samples in chunks: `MCState(..., chunk_size=64)` or `vs.chunk_size = 64`",
                "Intermediate results of the network exist for one chunk of samples at a time",
                true,
            ),
        ],
    },
    Software {
        name: "DESC",
        signs: &[
            "desc/objectives",
            "desc.objectives",
            "desc/compute",
            "desc/equilibrium",
            "desc.equilibrium",
            "desc-opt",
        ],
        options: &[
            // PlasmaControl/DESC docs/performance_tips.rst
            option(
                ANY,
                "Chunk the Jacobian: `ObjectiveFunction(..., deriv_mode=\"batched\", jac_chunk_size=100)`",
                "The Jacobian is computed some columns at a time",
                true,
            ),
            // PlasmaControl/DESC docs/performance_tips.rst
            option(
                ANY,
                "Give each objective its own `jac_chunk_size` with `deriv_mode=\"blocked\"`",
                "The Jacobian is computed objective by objective, each in its own chunks",
                true,
            ),
        ],
    },
    Software {
        name: "OTT-JAX",
        signs: &["ott/geometry/", "ott.geometry", "ott/solvers/", "ott.solvers", "ott-jax"],
        options: &[
            // ott-jax/ott src/ott/geometry/pointcloud.py
            option(
                DEVICE,
                "Recompute costs in batches: `PointCloud(x, y, batch_size=1024)`",
                "The cost and kernel matrices are never stored",
                true,
            ),
        ],
    },
    Software {
        name: "JAX MD",
        signs: &["jax_md/", "jax_md.", "from jax_md", "jax-md"],
        options: &[
            // jax-md/jax-md jax_md/partition.py
            option(
                DEVICE,
                "Build sparse lists directly: `partition.neighbor_list(..., format=partition.NeighborListFormat.Sparse, dense_candidate_format=False)`",
                "The dense (N, M) candidate matrix is not made",
                true,
            ),
            // jax-md/jax-md jax_md/partition.py
            option(
                DEVICE,
                "Lower `capacity_multiplier` (default 1.25) of `partition.neighbor_list`",
                "Fewer spare neighbour slots are allocated; overflow needs a new allocation sooner",
                true,
            ),
        ],
    },
    Software {
        name: "Diffrax",
        signs: &["import diffrax", "diffrax.diffeqsolve"],
        options: &[
            // patrick-kidger/diffrax diffrax/_adjoint.py
            option(
                DEVICE,
                "Set fewer checkpoints: `diffeqsolve(..., adjoint=diffrax.RecursiveCheckpointAdjoint(checkpoints=16))`",
                "Fewer copies of the state are saved for backpropagation; slower gradients",
                true,
            ),
        ],
    },
    Software {
        name: "TensorCircuit",
        signs: &["tensorcircuit/", "import tensorcircuit", "tc.set_backend"],
        options: &[
            // tensorcircuit/tensorcircuit-ng docs/source/faq.rst
            option(
                ANY,
                "Search a better contraction path: `tc.set_contractor(\"cotengra\")`",
                "The largest intermediate tensor is smaller",
                true,
            ),
            // tensorcircuit/tensorcircuit-ng docs/source/faq.rst
            option(
                ANY,
                "Measure with `templates.measurements.mpo_expectation` or `sparse_expectation`",
                "The full dense Hamiltonian is not built",
                true,
            ),
        ],
    },
    Software {
        name: "S2FFT",
        signs: &["s2fft/", "import s2fft", "s2fft."],
        options: &[
            // astro-informatics/s2fft README.md
            option(
                DEVICE,
                "Use on-the-fly transforms `s2fft.forward_jax`, not the precompute ones",
                "Wigner-d functions are computed recursively, not stored (17 GB at L=1024)",
                true,
            ),
        ],
    },
    Software {
        name: "Dynamiqs",
        signs: &["dynamiqs/", "import dynamiqs", "dq.mesolve", "dq.sesolve"],
        options: &[
            // dynamiqs/dynamiqs docs/documentation/basics/performance.md
            option(
                DEVICE,
                "Store no states: `save_states=False` (older releases: in `dq.Options`)",
                "The state at every time in `tsave` is not kept",
                true,
            ),
        ],
    },
    Software {
        name: "Jaxley",
        signs: &["jaxley/", "import jaxley", "jx.integrate"],
        options: &[
            // jaxleyverse/jaxley jaxley/integrate.py
            option(
                DEVICE,
                "Checkpoint in time: `jx.integrate(cell, checkpoint_lengths=[n, m])`",
                "Fewer time steps are saved for the gradient; product must cover all steps",
                true,
            ),
        ],
    },
    Software {
        name: "DeePMD-kit",
        signs: &["deepmd/", "deepmd-kit", "deepmd.infer", "deepmd_utils"],
        options: &[
            // deepmodeling/deepmd-kit doc/env.md
            option(
                DEVICE,
                "Fix a small inference batch: `DP_INFER_BATCH_SIZE=1024`",
                "Fewer frames times atoms are evaluated at once; no automatic growth",
                true,
            ),
        ],
    },
    Software {
        name: "Keras",
        signs: &["keras/src/", "keras.src."],
        options: &[
            // keras-team/keras keras/src/backend/common/remat.py
            option(
                DEVICE,
                "Build the model inside `with keras.RematScope(mode=\"full\"):`",
                "Activations are recomputed in the backward pass",
                true,
            ),
        ],
    },
    Software {
        name: "EfficientDet",
        signs: &["efficientdet/", "automl/efficientdet", "efficientdet-d"],
        options: &[
            // google/automl efficientdet/README.md
            option(
                DEVICE,
                "Set the hparam `gradient_checkpointing: [\"Add\"]`",
                "Only tensors with \"Add\" in their name are kept; d4 takes 1/3.2 of the memory",
                true,
            ),
        ],
    },
    Software {
        name: "BERT",
        signs: &[
            "create_pretraining_data.py",
            "--bert_config_file",
            "bert/run_classifier.py",
            "bert/run_squad.py",
            "bert/modeling.py",
            "modeling.BertModel",
        ],
        options: &[
            // google-research/bert README.md
            option(
                DEVICE,
                "Lower `--max_seq_length`, for example 128",
                "Shorter sequences; attention memory grows with the square",
                false,
            ),
            // google-research/bert README.md
            option(DEVICE, "Lower `--train_batch_size`", "Fewer examples are in a step", false),
            // google-research/bert README.md
            option(
                HOST,
                "Shard the corpus; run create_pretraining_data.py once per `--input_file` shard",
                "All examples of only one shard are in memory",
                false,
            ),
        ],
    },
    Software {
        name: "StarDist",
        signs: &["stardist/", "import stardist", "StarDist2D", "StarDist3D"],
        options: &[
            // stardist/stardist stardist/models/base.py
            option(
                DEVICE,
                "Predict in tiles: `model.predict_instances(img, n_tiles=(2,2))`",
                "One tile of the image is in the network at a time",
                true,
            ),
        ],
    },
    Software {
        name: "CSBDeep",
        signs: &["csbdeep/", "csbdeep.models", "import csbdeep", "n2v/models"],
        options: &[
            // CSBDeep/CSBDeep csbdeep/models/care_standard.py
            option(
                DEVICE,
                "Predict in tiles: `model.predict(img, axes, n_tiles=(2,2))`",
                "One tile of the image is in the network at a time",
                true,
            ),
        ],
    },
    Software {
        name: "DeepVariant",
        signs: &["deepvariant/", "run_deepvariant", "make_examples --mode", "call_variants"],
        options: &[
            // https://github.com/google/deepvariant/issues/427
            option(HOST, "Lower `--num_shards`", "Fewer make_examples processes share the RAM", true),
        ],
    },
    Software {
        name: "Tunix",
        signs: &["tunix/", "tunix.rl", "tunix.sft", "from tunix", "rl_cluster_lib"],
        options: &[
            // google/tunix tunix/rl/rl_cluster.py
            option(
                DEVICE,
                "Offload idle models: `rl_cluster.ClusterConfig(..., offload_to_cpu=True)`",
                "Actor, reference and rollout models wait in host memory when not in use",
                true,
            ),
            // google/tunix tunix/rl/rl_cluster.py
            option(
                DEVICE,
                "Score in pieces: `compute_logps_micro_batch_size=1` in the RL training config",
                "Log probabilities are computed for a slice of the batch at a time",
                true,
            ),
        ],
    },
    Software {
        name: "Levanter",
        signs: &["levanter/", "levanter.main", "levanter.trainer", "--trainer.per_device_parallelism"],
        options: &[
            // stanford-crfm/levanter docs/Hardware-Agnostic-Training.md
            option(
                DEVICE,
                "Lower `--trainer.per_device_parallelism`, keep `--trainer.train_batch_size`",
                "Fewer examples are on a device at once; gradients are accumulated",
                true,
            ),
        ],
    },
    Software {
        name: "EasyDeL",
        signs: &["easydel/", "import easydel", "easydel.", "EasyDeL"],
        options: &[
            // erfanzar/EasyDeL easydel/infra/etils.py
            option(
                DEVICE,
                "Recompute activations: `gradient_checkpointing=EasyDeLGradientCheckPointers.NOTHING_SAVEABLE`",
                "Only the residuals are kept for the backward pass",
                true,
            ),
            // erfanzar/EasyDeL easydel/infra/etils.py
            option(
                DEVICE,
                "Use a smaller optimizer: `optimizer=EasyDeLOptimizers.ADAFACTOR`",
                "Second moments are factored instead of stored in full",
                false,
            ),
        ],
    },
];
