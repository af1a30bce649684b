#!/usr/bin/env bash
# GRPO on GAIA with Qwen3-4B on the GPUs of this node: the variables and parameters of AWorld Train's run.sh.
#   bash run.sh                               trains
#   bash run.sh --dry-run                     renders a run directory, checks it against the installed verl, starts nothing
#   actor_lr=5e-7 bash run.sh trainer.total_epochs=2
#   ray job submit --address=… --no-wait -- bash run.sh
# "changed" marks what differs from there, and why. Each of the variables may be set from outside.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# ================= cluster topology =================
GPUS_PER_NODE=${SLURM_GPUS_ON_NODE:-${GPUS_PER_NODE:-1}}
NNODES=${SLURM_JOB_NUM_NODES:-${NNODES:-1}}
echo "Using $NNODES nodes and $GPUS_PER_NODE GPUs per node..."

# ================= data/model/tool =================
DATA_ROOT=${DATA_ROOT:-$here}
model_path=${model_path:-${MODEL_PATH:-$DATA_ROOT/Qwen/Qwen3-4B}}
if [ ! -d "$model_path" ]; then
  model_path=Qwen/Qwen3-4B
fi
train_files=${train_files:-$DATA_ROOT/datasets/train.jsonl} # changed: ours are rows to read; Parquet as there works too
test_files=${test_files:-$DATA_ROOT/datasets/test.jsonl}

# =================== custom ===================
reward_fn_name=${reward_fn_name:-gaiaRewardFunc} # changed: the reward is TypeScript; a .py file and its function work too
reward_fn_file_path=${reward_fn_file_path:-$here/reward.ts}
agent_loop_config_path=${agent_loop_config_path:-$here/agent.yaml}
# changed: dummy_tool_config_path is gone; it switched verl's own tool loop on, and the agent calls its tools itself

# =================== logging ===================
project_name=${project_name:-gaia}
experiment_name=${experiment_name:-qwen3}
export HYDRA_FULL_ERROR=1
# changed: RAY_LOGGING_LEVEL=DEBUG and set -x are gone; they bury what a person looks for

# ================= algorithm =================
adv_estimator=${adv_estimator:-grpo}
use_kl_in_reward=${use_kl_in_reward:-false}
kl_coef=${kl_coef:-0.0}
use_kl_loss=${use_kl_loss:-false}
kl_loss_coef=${kl_loss_coef:-0.0}
clip_ratio_low=${clip_ratio_low:-0.2}
clip_ratio_high=${clip_ratio_high:-0.28}
max_turns=${max_turns:-8}
max_prompt_length=${max_prompt_length:-8192}      # changed from 1024: the schemas of the tools alone are longer
max_response_length=${max_response_length:-16384} # changed from 2048: holds all turns and tool results of an episode
actor_lr=${actor_lr:-1e-6}
train_batch_size=${train_batch_size:-8}       # changed from 1: of one task a step, all answers are mostly right or all wrong
ppo_mini_batch_size=${ppo_mini_batch_size:-8} # changed from 1: one step is one update
n_resp_per_prompt=${n_resp_per_prompt:-8}     # changed from 1: alone in its group, a rollout has the advantage 0, always
n_resp_per_prompt_val=${n_resp_per_prompt_val:-1}
save_freq=${save_freq:-20} # changed from -1, which saves nothing

# ================= performance =================
infer_tp=${infer_tp:-1} # tensor parallel size of vLLM
train_sp=${train_sp:-1} # Ulysses sequence parallel size of the actor
offload=${offload:-true}
actor_max_token_len_per_gpu=$(((max_prompt_length + max_response_length) * 4))
log_prob_max_token_len_per_gpu=$((actor_max_token_len_per_gpu * 2))
# changed: NCCL_*, UCX_* and VLLM_* are left to the machine; they named the network cards of one cluster

# In the repository its launcher finds Node and the sources; elsewhere Node 22.19 or newer runs this.
node=(node)
if [ -f "$here/../../scripts/launch.mjs" ]; then
  node=(node "$here/../../scripts/launch.mjs" run)
fi

exec "${node[@]}" "$here/main.ts" \
  --agent "$agent_loop_config_path" \
  --reward "$reward_fn_file_path#$reward_fn_name" \
  --train "$train_files" \
  --test "$test_files" \
  algorithm.adv_estimator="$adv_estimator" \
  algorithm.use_kl_in_reward="$use_kl_in_reward" \
  algorithm.kl_ctrl.kl_coef="$kl_coef" \
  data.return_raw_chat=true \
  data.train_batch_size="$train_batch_size" \
  data.max_prompt_length="$max_prompt_length" \
  data.max_response_length="$max_response_length" \
  data.filter_overlong_prompts=true \
  data.truncation=error \
  actor_rollout_ref.model.path="$model_path" \
  actor_rollout_ref.model.use_remove_padding=true \
  actor_rollout_ref.model.enable_gradient_checkpointing=true \
  actor_rollout_ref.actor.use_kl_loss="$use_kl_loss" \
  actor_rollout_ref.actor.kl_loss_coef="$kl_loss_coef" \
  actor_rollout_ref.actor.clip_ratio_low="$clip_ratio_low" \
  actor_rollout_ref.actor.clip_ratio_high="$clip_ratio_high" \
  actor_rollout_ref.actor.clip_ratio_c=10.0 \
  actor_rollout_ref.actor.optim.lr="$actor_lr" \
  actor_rollout_ref.actor.use_dynamic_bsz=true \
  actor_rollout_ref.actor.ppo_mini_batch_size="$ppo_mini_batch_size" \
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu="$actor_max_token_len_per_gpu" \
  actor_rollout_ref.actor.ulysses_sequence_parallel_size="$train_sp" \
  actor_rollout_ref.actor.fsdp_config.param_offload="$offload" \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload="$offload" \
  actor_rollout_ref.ref.log_prob_max_token_len_per_gpu="$log_prob_max_token_len_per_gpu" \
  actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu="$log_prob_max_token_len_per_gpu" \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.mode=async \
  actor_rollout_ref.rollout.tensor_model_parallel_size="$infer_tp" \
  actor_rollout_ref.rollout.multi_turn.max_user_turns="$max_turns" \
  actor_rollout_ref.rollout.multi_turn.max_assistant_turns="$max_turns" \
  actor_rollout_ref.rollout.multi_turn.format=hermes \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.75 \
  actor_rollout_ref.rollout.n="$n_resp_per_prompt" \
  actor_rollout_ref.rollout.val_kwargs.top_p=0.6 \
  actor_rollout_ref.rollout.val_kwargs.temperature=1.0 \
  actor_rollout_ref.rollout.val_kwargs.n="$n_resp_per_prompt_val" \
  trainer.logger=console \
  trainer.project_name="$project_name" \
  trainer.experiment_name="$experiment_name" \
  trainer.n_gpus_per_node="$GPUS_PER_NODE" \
  trainer.val_before_train=true \
  trainer.log_val_generations=50 \
  trainer.nnodes="$NNODES" \
  trainer.save_freq="$save_freq" \
  trainer.test_freq=5 \
  trainer.total_epochs=1 \
  "$@"
