import type { ConsoleReader } from '@aworld-train/core'
import { commonFailures, createFailureReader, type FailureRow, modelFailures } from '../../shared/process/failure-reader.ts'
import { withoutActor } from './worker-line.ts'
import { createWorkerStart } from './worker-start.ts'

/** Known failures of verl 0.9 and their remedies, the most specific first. */
const rows: readonly FailureRow[] = [
  ...commonFailures('verl'),
  {
    pattern: /(?:torch\.)?(?:cuda\.)?OutOfMemoryError: (.*CUDA out of memory.*)|CUDA out of memory[^\n]*/i,
    code: 'TRAINER_OUT_OF_MEMORY',
    describe: ([line, detail]) =>
      `A GPU ran out of memory (${detail ?? line}). Lower actor_rollout_ref.rollout.gpu_memory_utilization, the micro batch sizes or data.max_response_length, or switch on param_offload.`,
  },
  {
    pattern: /ray\.exceptions\.OutOfMemoryError|due to the node running low on memory/,
    code: 'TRAINER_OUT_OF_MEMORY',
    describe: () => 'Ray ended a worker because the machine ran out of memory; leave more of it free, or use smaller batches.',
  },
  {
    pattern: /ChannelError: POLICY_WORKER_DIED: (.+)/,
    code: 'TRAINER_PROCESS_DIED',
    describe: ([, detail]) => `A rollout server died (${detail}); run the same command again: the run resumes from its last checkpoint.`,
  },
  {
    pattern: /no materializable trajectories/,
    code: 'TRAINER_EMPTY_BATCH',
    describe: () => 'Every rollout of a batch failed, so there was nothing to train; read why in the events of the run.',
  },
  {
    pattern: /response_mask must contain at least one valid token/,
    code: 'TRAINER_EMPTY_BATCH',
    describe: () => 'No row of a batch has a token that the policy sampled, so there was nothing to train.',
  },
  {
    pattern: /\[GROUPS_FAILED\] (\d+) groups/,
    code: 'TRAINER_EMPTY_BATCH',
    describe: ([, count]) =>
      `${count} groups with a failed rollout were replaced, which is the limit; read why rollouts fail, or raise group.maxReplaced.`,
  },
  {
    pattern: /data size must be divisible by force_group_size \* micro_batch_size_per_gpu/,
    code: 'CONFIG_INVALID',
    describe: () =>
      'A micro batch size does not divide the batch: rows are padded to a multiple of ppo_mini_batch_size × rollout.n, and every *_micro_batch_size_per_gpu must divide that number on each rank.',
  },
  {
    pattern: /(?:AssertionError|ValueError): (.*(?:train_batch_size|mini_batch_size|micro_batch_size|batch size).*)/,
    code: 'CONFIG_INVALID',
    describe: ([, detail]) => `verl refuses the batch sizes: ${detail}`,
  },
  {
    pattern: /Could not override '([^']+)'/,
    code: 'CONFIG_INVALID',
    describe: ([, key]) => `verl's configuration has no key "${key}"; correct it, or write +${key}=… where a dataclass of verl takes it.`,
  },
  {
    pattern: /(?:ConfigAttributeError|ConfigKeyError|InterpolationKeyError|MissingMandatoryValue|ValidationError): (.+)/,
    code: 'CONFIG_INVALID',
    describe: ([, detail]) => `verl's configuration does not hold: ${detail}`,
  },
  {
    pattern:
      /(?:ConfigCompositionException|MissingConfigException|OverrideParseException)(?:: (.+))?|no viable alternative at input '(.+)'/,
    code: 'CONFIG_INVALID',
    describe: ([line, detail, input]) => `Hydra cannot read verl's configuration: ${detail ?? input ?? line}`,
  },
  {
    pattern: /Total available GPUs (\S+) is less than total desired GPUs (\d+)/,
    code: 'CONFIG_INVALID',
    describe: ([, have, want]) =>
      `The configuration asks for ${want} GPUs and Ray has ${have}; correct trainer.nnodes and trainer.n_gpus_per_node, or the layout.`,
  },
  {
    pattern:
      /(?:No CUDA GPUs are available|NVIDIA driver on your system is too old|Found no NVIDIA driver|CUDA driver version is insufficient)/,
    code: 'TRAINER_ENVIRONMENT',
    describe: ([detail]) => `torch cannot use a GPU (${detail}); run "aworld-train doctor --engine verl", or set smoke for a run on CPU.`,
  },
  ...modelFailures('actor_rollout_ref.model.path'),
  {
    pattern: /tokenizer\.chat_template is not set/,
    code: 'TEMPLATE_UNSUPPORTED',
    describe: () => "The model's tokenizer has no chat template; use a chat model, or add chat_template.jinja to its folder.",
  },
  {
    pattern: /\[LOGPROBS_NOT_FINITE\]|\bloss is (?:nan|inf)|(?:nan|inf) (?:found )?in (?:loss|gradients?)/i,
    code: 'TRAINER_NOT_FINITE',
    describe: () =>
      'The loss, or the logprob of a sampled token, is no finite number any more; lower the learning rate, or look for an extreme logprob or advantage.',
  },
  {
    pattern:
      /ray\.exceptions\.(?:RayActorError|ActorDiedError|ActorUnavailableError|NodeDiedError|LocalRayletDiedError|RaySystemError|WorkerCrashedError|OwnerDiedError)\b[^\n]*|The raylet (?:is dead|died)[^\n]*|The actor died unexpectedly[^\n]*|GCS (?:server )?(?:is dead|died|unavailable)[^\n]*/,
    code: 'TRAINER_PROCESS_DIED',
    describe: ([line]) => `A process of Ray died (${line}); run the same command again: the run resumes from its last checkpoint.`,
  },
]

/** Reads the console of one start: why verl ends, and whether Ray can start its workers. */
export function createConsoleReader(): ConsoleReader {
  const failures = createFailureReader('verl', rows)
  const workers = createWorkerStart()
  return {
    read(line) {
      failures.read(withoutActor(line))
      workers.read(line)
    },
    failure: failures.failure,
    stuck: workers.failure,
  }
}
