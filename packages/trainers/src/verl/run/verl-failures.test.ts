import { expect, it } from 'vitest'
import { createConsoleReader } from './verl-failures.ts'

function failureOf(...lines: string[]) {
  const reader = createConsoleReader()
  for (const line of lines) reader.read(line)
  return reader.failure()
}

it.each([
  ["(TaskRunnerV1 pid=99) ModuleNotFoundError: No module named 'cachetools'", 'TRAINER_ENVIRONMENT', '"cachetools"'],
  ['ImportError: libcublasLt.so.13: cannot open shared object file', 'TRAINER_ENVIRONMENT', 'libcublasLt.so.13'],
  ['torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.', 'TRAINER_OUT_OF_MEMORY', 'gpu_memory_utilization'],
  [
    'ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.',
    'TRAINER_OUT_OF_MEMORY',
    'Ray ended a worker',
  ],
  ['OSError: [Errno 28] No space left on device', 'STORE_FULL', 'disk is full'],
  ['RuntimeError: batch has no materializable trajectories', 'TRAINER_EMPTY_BATCH', 'Every rollout of a batch failed'],
  ['ValueError: response_mask must contain at least one valid token', 'TRAINER_EMPTY_BATCH', 'No row of a batch'],
  [
    'RuntimeError: [GROUPS_FAILED] 17 groups with a failed rollout were replaced in step 2, and the limit is 16; the episodes of the run say why.',
    'TRAINER_EMPTY_BATCH',
    '17 groups',
  ],
  [
    "RuntimeError: [LOGPROBS_NOT_FINITE] The actor's logprob of a sampled token is not a finite number: an update diverged.",
    'TRAINER_NOT_FINITE',
    'logprob',
  ],
  [
    "(AgentLoopWorkerTQ pid=7) aworld_train_bridge.errors.ChannelError: POLICY_WORKER_DIED: verl's rollout server failed: ActorDiedError: x",
    'TRAINER_PROCESS_DIED',
    'A rollout server died',
  ],
  ['AssertionError: data size must be divisible by force_group_size * micro_batch_size_per_gpu', 'CONFIG_INVALID', 'micro_batch_size'],
  [
    'AssertionError: real_train_batch_size (10) must be divisible by minimal possible batch size (4)',
    'CONFIG_INVALID',
    'real_train_batch_size',
  ],
  ["Could not override 'actor_rollout_ref.rolout.n'.", 'CONFIG_INVALID', '"actor_rollout_ref.rolout.n"'],
  ["omegaconf.errors.ConfigAttributeError: Key 'nn' is not in struct", 'CONFIG_INVALID', "Key 'nn'"],
  ["hydra.errors.OverrideParseException: no viable alternative at input 'a b'", 'CONFIG_INVALID', "no viable alternative at input 'a b'"],
  ['ValueError: Total available GPUs 1 is less than total desired GPUs 8', 'CONFIG_INVALID', 'asks for 8 GPUs and Ray has 1'],
  ['RuntimeError: No CUDA GPUs are available', 'TRAINER_ENVIRONMENT', 'doctor --engine verl'],
  ['OSError: models/qwen is not a local folder and is not a valid model identifier', 'CONFIG_INVALID', 'actor_rollout_ref.model.path'],
  [
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
    'CONFIG_INVALID',
    'actor_rollout_ref.model.path to a folder',
  ],
  ['ValueError: Cannot use chat template functions because tokenizer.chat_template is not set', 'TEMPLATE_UNSUPPORTED', 'chat template'],
  ['ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.', 'TRAINER_PROCESS_DIED', 'resumes'],
  ['KeyError: no one knows', 'TRAINER_FAILED', 'KeyError: no one knows'],
])('%s', (line, code, part) => {
  expect(failureOf('Training started', line, 'Error executing job with overrides: []')).toMatchObject({
    code,
    message: expect.stringContaining(part),
  })
})

it('takes the line that explains most, wherever it stands, since Ray wraps the errors of its workers', () => {
  const failure = failureOf(
    "(WorkerDict pid=3) ModuleNotFoundError: No module named 'flash_attn'",
    'ray.exceptions.RayTaskError(ModuleNotFoundError): ray::TaskRunnerV1.run()',
    'ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.',
    'RuntimeError: something else',
  )
  expect(failure).toMatchObject({ code: 'TRAINER_ENVIRONMENT', line: "ModuleNotFoundError: No module named 'flash_attn'" })
})

it('takes nothing from rollouts that failed, whatever their agents said: groups of them are replaced', () => {
  const rollouts = [
    '(AgentLoopWorkerTQ pid=7) aworld_train_bridge.errors.ChannelError: AGENT_FAILED: The agent threw: ImportError: CUDA out of memory',
    'aworld_train_bridge.errors.ChannelError: ROLLOUT_WITHOUT_ROWS: Rollout "a" gives no row',
  ]
  expect(failureOf(...rollouts)).toBeNull()
  expect(failureOf(...rollouts, 'OSError: [Errno 28] No space left on device')).toMatchObject({ code: 'STORE_FULL' })
})

it.each([
  ['CHANNEL_UNAUTHORIZED', 'CONFIG_INVALID', 'The rollout service at ws://h refused the token (HTTP 401); set AWORLD_TRAIN_CHANNEL_TOKEN.'],
  ['CHANNEL_UNREACHABLE', 'CHANNEL_LOST', 'No rollout service answers at ws://h. Tried for 60 s.'],
  ['CHANNEL_LOST', 'CHANNEL_LOST', 'The connection to ws://h was lost (1006). Tried for 300 s.'],
  ['TEMPLATE_MISMATCH', 'TEMPLATE_MISMATCH', 'The first that differs is 7.'],
  ['CONFIG_INVALID', 'CONFIG_INVALID', '"x" is no WebSocket URL; set AWORLD_TRAIN_CHANNEL to ws://host:port/v1/channel.'],
])('names %s, which ends the channel of a worker, before what follows from it', (channelCode, code, message) => {
  const line = `(AgentLoopWorkerTQ pid=7) aworld_train_bridge.errors.ChannelError: ${channelCode}: ${message}`
  const failure = failureOf(
    line,
    'RuntimeError: [GROUPS_FAILED] 17 groups with a failed rollout were replaced in step 1, and the limit is 16',
  )
  expect(failure).toMatchObject({ code, message: `The channel between verl and AWorld Train failed (${channelCode}): ${message}` })
})

it('says nothing of a console that names no error', () => {
  expect(failureOf('Training Progress: 100%', 'Final validation metrics: None')).toBeNull()
})
