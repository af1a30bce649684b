import { valueAt } from '@aworld-train/training'
import { isOwnRayKey } from '../config/own-ray.ts'
import type { VerlPlan } from '../config/verl-config.ts'
import { formatKey } from '../config/verl-keys.ts'
import { exportedVariables, workerEnvironment } from '../config/worker-variables.ts'
import { verlPluginModule } from '../python/bridge-names.ts'
import { shellText } from './shell-text.ts'

/** Port of the rollout service in serve.yaml. */
export const servePort = 8090

/** Variables of the published launch script, and the key of each. */
const variables: readonly (readonly [variable: string, path: string])[] = [
  ['GPUS_PER_NODE', 'trainer.n_gpus_per_node'],
  ['NNODES', 'trainer.nnodes'],
  ['model_path', 'actor_rollout_ref.model.path'],
  ['train_files', 'data.train_files'],
  ['test_files', 'data.val_files'],
  ['reward_fn_name', 'reward.custom_reward_function.name'],
  ['reward_fn_file_path', 'reward.custom_reward_function.path'],
  ['agent_loop_config_path', 'actor_rollout_ref.rollout.agent.agent_loop_config_path'],
  ['project_name', 'trainer.project_name'],
  ['experiment_name', 'trainer.experiment_name'],
  ['default_local_dir', 'trainer.default_local_dir'],
  ['adv_estimator', 'algorithm.adv_estimator'],
  ['use_kl_in_reward', 'algorithm.use_kl_in_reward'],
  ['kl_coef', 'algorithm.kl_ctrl.kl_coef'],
  ['use_kl_loss', 'actor_rollout_ref.actor.use_kl_loss'],
  ['kl_loss_coef', 'actor_rollout_ref.actor.kl_loss_coef'],
  ['clip_ratio_low', 'actor_rollout_ref.actor.clip_ratio_low'],
  ['clip_ratio_high', 'actor_rollout_ref.actor.clip_ratio_high'],
  ['max_prompt_length', 'data.max_prompt_length'],
  ['max_response_length', 'data.max_response_length'],
  ['actor_lr', 'actor_rollout_ref.actor.optim.lr'],
  ['train_batch_size', 'data.train_batch_size'],
  ['ppo_mini_batch_size', 'actor_rollout_ref.actor.ppo_mini_batch_size'],
  ['n_resp_per_prompt', 'actor_rollout_ref.rollout.n'],
  ['n_resp_per_prompt_val', 'actor_rollout_ref.rollout.val_kwargs.n'],
  ['infer_tp', 'actor_rollout_ref.rollout.tensor_model_parallel_size'],
  ['train_sp', 'actor_rollout_ref.actor.ulysses_sequence_parallel_size'],
  ['offload', 'actor_rollout_ref.actor.fsdp_config.param_offload'],
  ['optimizer_offload', 'actor_rollout_ref.actor.fsdp_config.optimizer_offload'],
  ['actor_max_token_len_per_gpu', 'actor_rollout_ref.actor.ppo_max_token_len_per_gpu'],
  ['log_prob_max_token_len_per_gpu', 'actor_rollout_ref.ref.log_prob_max_token_len_per_gpu'],
]

/** Variables of a cluster's scheduler. They win, as in the published script, unless a layout of ours sets these values. */
const scheduler: Readonly<Record<string, string>> = { GPUS_PER_NODE: 'SLURM_GPUS_ON_NODE', NNODES: 'SLURM_JOB_NUM_NODES' }

const rule = (title: string) => `# ================= ${title} =================\n`

/** Text of `run.sh`, which starts verl by hand or under `ray job submit`, against a running rollout service. */
export function renderRunScript(plan: VerlPlan): string {
  return [header(plan), plan.run.agent.module === null ? refusal(plan) : '', `${folders}`, ...parameters(plan)]
    .filter((section) => section !== '')
    .join('\n')
}

function parameters(plan: VerlPlan): string[] {
  const { run, keys, tree, verl, settings } = plan
  const exported = new Set(exportedVariables(plan.environment))
  const inRun = (path: string, text: string) =>
    shellText(text.replaceAll(run.path, '\0'), { runPath: writtenKeys.has(path) ? 'kept_path' : 'run_path' })
  const all = new Map([...keys.values()].map(({ path, value }) => [path, value]))
  for (const [, path] of variables) {
    const value = valueAt(tree, path)
    if (!all.has(path) && value !== null && value !== undefined) all.set(path, value)
  }
  const assignments: string[] = []
  const list: string[] = []
  const ownRay: string[] = []
  for (const [path, value] of all) {
    const variable = variables.find(([, of]) => of === path)?.[0]
    const [key, text] = cut(formatKey(verl.defaults, { path, value }))
    // verl 0.9 passes its runtime environment to Ray without resolving references in it, so the shell does that.
    const worker = path.startsWith(`${workerEnvironment}.`) ? path.slice(workerEnvironment.length + 1) : ''
    const named = exported.has(worker) || value === `\${oc.env:${worker}}`
    if (named) list.push(`"${key}='$${worker}'"`)
    else if (variable === undefined) (isOwnRayKey(path) ? ownRay : list).push(inRun(path, `${key}=${text}`))
    if (named || variable === undefined) continue
    list.push(`${key}="$${variable}"`)
    const first = settings.layout === null ? scheduler[variable] : undefined
    const fallback = `\${${variable}:-${inRun(path, text)}}`
    assignments.push(`${variable}=${first ? `\${${first}:-${fallback}}` : fallback}`)
  }
  return [
    `${rule('parameters: environment variables override them')}${assignments.join('\n')}\n`,
    `${rule('rollout service')}${service}`,
    `${rule('environment of verl')}${environmentOf(plan)}`,
    `${rule('Ray')}${rayOf(ownRay)}`,
    `exec "$python" -m verl.trainer.main_ppo \\\n${list.map((each) => `  ${each} \\`).join('\n')}\n  "\${launch[@]}" "$@"\n`,
  ]
}

function cut(override: string): [string, string] {
  const at = override.indexOf('=')
  return [override.slice(0, at), override.slice(at + 1)]
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ')

function header({ run, verl }: VerlPlan): string {
  return `#!/usr/bin/env bash
# Trains "${oneLine(run.name)}" with verl ${verl.version}. Written by AWorld Train; final_trainer.yaml says where each value comes from.
#   1. aworld-train serve --config serve.yaml     runs the agent, and stays up
#   2. bash run.sh [key=value …]                  or, in a cluster that sees this folder: ray job submit -- bash "$PWD/run.sh" [key=value …]
# How many turns an agent has, how many rollouts run at once and what scores them stands in serve.yaml.
set -euo pipefail

stop() {
  printf '%s\\n' "$1" >&2
  exit 2
}
`
}

/** Keys of the folders and files that verl writes. */
const writtenKeys: ReadonlySet<string> = new Set([
  'trainer.default_local_dir',
  'trainer.rollout_data_dir',
  'trainer.validation_data_dir',
  'trainer.resume_from_path',
])

const folders = `run_path=$(cd "$(dirname "\${BASH_SOURCE[0]}")" && pwd)
# Where the run is written.
kept_path=\${AWORLD_TRAIN_RUN_PATH:-$run_path}
[ "\${run_path/\\'/}\${kept_path/\\'/}" = "$run_path$kept_path" ] || stop "An override of verl cannot hold the apostrophe in $kept_path; give this folder another name."
[ "\${kept_path/\\/working_dir_files\\//}" = "$kept_path" ] || stop "Ray removes $kept_path after the job. Submit without --working-dir where every node sees the run directory (ray job submit -- bash /path/of/run.sh), or name a folder that stays, such as with: --runtime-env-json '{\\"env_vars\\": {\\"AWORLD_TRAIN_RUN_PATH\\": \\"/shared/runs/NAME\\"}}'"
mkdir -p "$kept_path"
`

/** Explains that the agent is an object, which exists only in the process that started the run. */
function refusal({ run }: VerlPlan): string {
  const text = `The agent "${oneLine(run.agent.name)}" was given as an object, which lives in the program that made it. Export it from a module, pass "./agent.ts#agent" as the agent, and start the run again; then this script trains it by hand.`
  return `stop ${shellText(text)}\n`
}

const service = `export AWORLD_TRAIN_CHANNEL=\${AWORLD_TRAIN_CHANNEL:-ws://127.0.0.1:${servePort}/v1/channel}
if [ -z "\${AWORLD_TRAIN_CHANNEL_TOKEN_FILE:-}" ]; then
  # A file, since Ray shows the environment of its jobs; one that is there is taken.
  AWORLD_TRAIN_CHANNEL_TOKEN_FILE=$kept_path/channel.token
  [ -n "\${AWORLD_TRAIN_CHANNEL_TOKEN:-}" ] || [ -s "$AWORLD_TRAIN_CHANNEL_TOKEN_FILE" ] || stop "AWORLD_TRAIN_CHANNEL_TOKEN is not set; set it to the same secret here and for aworld-train serve, such as the output of: openssl rand -hex 16. Or keep that secret in $AWORLD_TRAIN_CHANNEL_TOKEN_FILE."
  [ -z "\${AWORLD_TRAIN_CHANNEL_TOKEN:-}" ] || (umask 077 && printf '%s' "$AWORLD_TRAIN_CHANNEL_TOKEN" >"$AWORLD_TRAIN_CHANNEL_TOKEN_FILE")
fi
export AWORLD_TRAIN_CHANNEL_TOKEN_FILE
[ -r "$AWORLD_TRAIN_CHANNEL_TOKEN_FILE" ] || stop "There is no $AWORLD_TRAIN_CHANNEL_TOKEN_FILE; unset AWORLD_TRAIN_CHANNEL_TOKEN_FILE and set AWORLD_TRAIN_CHANNEL_TOKEN."
address=\${AWORLD_TRAIN_CHANNEL#*://}
address=\${address%%/*}
channel_port=\${address##*:}
if [ "$channel_port" = "$address" ]; then channel_port=80; fi
timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "\${address%:*}" "$channel_port" 2>/dev/null || stop "No rollout service answers at $AWORLD_TRAIN_CHANNEL; in another shell run: aworld-train serve --config $run_path/serve.yaml (elsewhere: set AWORLD_TRAIN_CHANNEL to ws://host:port/v1/channel)"
`

function environmentOf({ run, environment, settings }: VerlPlan): string {
  const assignments = Object.entries(environment).filter(
    ([name]) => name !== 'PYTHONPATH' && name !== 'VERL_USE_EXTERNAL_MODULES' && !scheduler[name],
  )
  return `${assignments.map(([name, text]) => `export ${name}=\${${name}:-${shellText(text)}}\n`).join('')}bridge=\${AWORLD_TRAIN_BRIDGE:-${shellText(run.bridgeDirectory)}}
[ -d "$bridge/aworld_train_bridge" ] || stop "$bridge does not hold the bridge; set AWORLD_TRAIN_BRIDGE to the folder python of the package @aworld-train/trainers."
export PYTHONPATH="$bridge\${PYTHONPATH:+:$PYTHONPATH}"
export VERL_USE_EXTERNAL_MODULES=${verlPluginModule}\${VERL_USE_EXTERNAL_MODULES:+,$VERL_USE_EXTERNAL_MODULES}
export AWORLD_TRAIN_RUN=\${AWORLD_TRAIN_RUN:-${shellText(run.name)}}
export AWORLD_TRAIN_RUN_PATH=$kept_path
export AWORLD_TRAIN_INCARNATION=\${AWORLD_TRAIN_INCARNATION:-$(cat /proc/sys/kernel/random/uuid 2>/dev/null || date +%s%N)}
mkdir -p "$kept_path/metrics"
export VERL_FILE_LOGGER_PATH=\${VERL_FILE_LOGGER_PATH:-$kept_path/metrics/$AWORLD_TRAIN_INCARNATION.jsonl}
export HYDRA_FULL_ERROR=1
python=\${AWORLD_TRAIN_PYTHON:-${shellText(settings.python ?? run.python ?? 'python3')}}
command -v "$python" >/dev/null || stop "There is no $python; set AWORLD_TRAIN_PYTHON to a Python that has verl, or make one with: aworld-train setup verl"
`
}

/** Keys for starting Ray. They are left out when a cluster is joined, because Ray refuses them then. */
function rayOf(rayKeys: readonly string[]): string {
  const hydra = 'hydra.run.dir="$kept_path/hydra"'
  const list = [hydra, ...rayKeys].map((each) => `\n  ${each}`).join('')
  return `launch=(${list}
)
prepare_ray() {
  # Ray joins what RAY_ADDRESS names, which it does in a job of a cluster, or else what was started on this machine.
  local cluster=\${RAY_ADDRESS:-} quoted
  [ -n "$cluster" ] || cluster=$(cat "\${RAY_TMPDIR:-\${TMPDIR:-/tmp}}/ray/ray_current_cluster" 2>/dev/null) || cluster=local
  [ "$cluster" = local ] || launch=(${hydra})
  # Ray 2.60 puts the path of its workers' interpreter into a line of bash as it is.
  quoted=$(printf %q "$python")
  [ "$quoted" = "$python" ] || launch+=("++ray_kwargs.ray_init.runtime_env.py_executable='$quoted'")
}
prepare_ray
# What ray job submit was given for its workers stands beside what is given here, of which this is the newer.
export RAY_OVERRIDE_JOB_RUNTIME_ENV=\${RAY_OVERRIDE_JOB_RUNTIME_ENV:-1}
`
}
