import type { ErrorBoundary, ErrorRecord } from './episode.ts'
import { sourceOfStack } from './error-source.ts'

interface CatalogueRow {
  readonly boundary: ErrorBoundary
  readonly retryable: boolean
  /** The remedy, for people. */
  readonly remedy: string
}

const row = (boundary: ErrorBoundary, retryable: boolean, remedy: string): CatalogueRow => ({ boundary, retryable, remedy })

/** Every error that our packages raise. A plug-in adds its own under `plugin-name/CODE`. */
export const errorCatalogue = {
  AGENT_FAILED: row('agent', false, 'Read the cause; the episode keeps the turns so far.'),
  AGENT_INVALID: row(
    'agent',
    false,
    'Pass an Agent, a Swarm, a function (task, context) => answer, or the path of a module or agent.yaml.',
  ),
  AGENT_NO_MODEL_CALL: row('agent', false, 'Give the agent the base URL of its context; without a call there is nothing to train.'),
  AGENT_LIMIT: row('agent', false, 'Raise the limit, or make the agent stop earlier.'),
  FILES_REFUSED: row(
    'agent',
    false,
    'Let the agent leave regular files where environment.collect looks: at most 64, of 20 MB together. The reward gets none of these.',
  ),
  ENVIRONMENT_START_FAILED: row('environment', true, 'Check the command or url of the MCP server.'),
  ENVIRONMENT_TOOLS_CHANGED: row('environment', false, 'Keep the list of tools constant while a run goes on.'),
  SANDBOX_UNAVAILABLE: row('environment', false, 'Do what the message says, or choose another tier.'),
  TOOL_TIMEOUT: row('environment', true, 'Raise the timeout of the server, or make the tool answer sooner.'),
  TOOL_SERVER_DIED: row(
    'environment',
    true,
    'Read the stderr of the server; what it kept is lost, and the rollout begins again with a fresh one.',
  ),
  TOOL_RESULT_INVALID: row('environment', false, 'Make the tool answer valid UTF-8 within the size limit.'),
  LEASE_INVALID: row('environment', false, 'Correct the request; the field is named.'),
  LEASE_UNKNOWN: row('environment', false, 'Open a lease for a new attempt; what the old one held is gone.'),
  LEASE_CONFLICT: row('environment', false, 'Count attempts up, and ask for an attempt in the same words each time.'),
  LEASE_LIMIT: row('environment', true, 'Close leases that have ended, or raise the number of leases of the server.'),
  GATEWAY_BAD_REQUEST: row('gateway', false, 'Correct the request.'),
  GATEWAY_UNAUTHORIZED: row(
    'gateway',
    false,
    'Use the whole base URL that serve prints, or that of a session or a rollout that is still open.',
  ),
  HOST_REFUSED: row(
    'gateway',
    false,
    'Ask for the server by a name of loopback, or add the name to allowedHosts: a page in a browser may not reach it under one of its own. A service without a token answers no page.',
  ),
  GATEWAY_PORT_IN_USE: row('gateway', false, 'Choose another port, or 0 for any free one.'),
  GATEWAY_MODEL_UNKNOWN: row('gateway', false, 'Ask for one of the models that are named, or add an alias to the configuration.'),
  GATEWAY_INPUT_UNSUPPORTED: row('gateway', false, 'Send text; the policy has no eyes and no ears.'),
  GATEWAY_OVERLOADED: row('gateway', true, 'Send the request again later; the message says when there is room.'),
  GATEWAY_FAILED: row('gateway', false, 'Report this together with its cause.'),
  POLICY_CONTEXT_OVERFLOW: row('policy', false, 'Shorten the conversation, or use a model with a longer context.'),
  POLICY_UNAVAILABLE: row('policy', true, 'Check that the engine runs.'),
  POLICY_ABORTED: row('policy', true, 'The engine gave the call up, as it does for an update of its weights; the call may be sent again.'),
  POLICY_FAILED: row('policy', false, 'Read the message of the engine.'),
  POLICY_RATE_LIMITED: row('policy', true, 'Lower the concurrency, or raise the limit of the engine.'),
  POLICY_RESPONSE_INVALID: row('policy', false, 'Check that the engine is of a supported version and reports token ids and logprobs.'),
  POLICY_STALE_WEIGHTS: row('policy', false, 'The engine samples from other weights than were published; publish again, or restart it.'),
  POLICY_VERSION_CONFLICT: row('policy', false, 'Publish a version above the one that is named.'),
  POLICY_WORKER_DIED: row('policy', false, 'Start the run again; it resumes from its last checkpoint.'),
  POLICY_LOGPROB_MISMATCH: row('policy', false, 'The weights that sample are not the weights that train; report this.'),
  FROZEN_MODEL_FAILED: row('policy', false, 'Read the answer of the third party; check its base URL, key and model name.'),
  FROZEN_REPLAY_MISSING: row('policy', false, 'Record the run again, or set the frozen model to record or live.'),
  TEMPLATE_UNSUPPORTED: row('policy', false, 'Use a chat engine, which renders on its own side.'),
  REWARD_FAILED: row('reward', false, 'Make the reward return a finite number for every episode.'),
  REWARD_INVALID: row('reward', false, 'Return a finite number, or { reward, scores, agents }.'),
  REWARD_PROCESS_DIED: row(
    'reward',
    true,
    'Look for what ends the process of the reward, such as an exit or too little memory; the rollout is run again.',
  ),
  JUDGE_INVALID: row(
    'reward',
    false,
    'Read what the judge answered; ask it in clearer words, or name a stronger model. The episode has no reward, and is not trained.',
  ),
  REWARD_TIMEOUT: row('reward', false, 'Make the reward return sooner, or raise reward.timeoutMs.'),
  STORE_FAILED: row('store', false, 'Read the cause; what was not acknowledged is not in the store.'),
  EVALUATION_FAILED: row(
    'trainer',
    false,
    'Read the first failure and mend its cause. Then run what failed once more with eval --again failed, or all of it with --new.',
  ),
  ROLLOUT_UNKNOWN: row('trainer', false, 'Use the id that submitting the rollout returned.'),
  ROLLOUT_CONFLICT: row('trainer', false, 'Use another key; this one belongs to a different rollout.'),
  SERVICE_UNAUTHORIZED: row('trainer', false, 'Send the token of the service, or the key of the address, as "Authorization: Bearer …".'),
  ROLLOUT_INVALID: row('trainer', false, 'Correct the request; the field is named.'),
  ROLLOUT_QUEUE_FULL: row('trainer', true, 'Submit the rollout again when others have ended, or raise limits.maxQueuedBytes.'),
  ROLLOUT_CANCELLED: row('trainer', true, 'Run the same command again; the rollout runs again.'),
  ROLLOUT_CLOSED: row('trainer', false, 'The rollout has ended on the side of the trainer; nothing is sampled for it any more.'),
  ROLLOUT_UNSCORED: row('reward', false, 'Nothing, where the reward abstains on purpose; else let it return a number.'),
  ROLLOUT_WITHOUT_ROWS: row(
    'trainer',
    false,
    'Raise the longest prompt or response of the trainer, or make the agent keep to them; the message says what was left out.',
  ),
  CHANNEL_PROTOCOL: row('trainer', false, 'Install the same version of aworld-train and of its Python bridge.'),
  CHANNEL_INVALID: row('trainer', false, 'Install the same version on both sides of the channel; the message says what could not be read.'),
  CHANNEL_SUPERSEDED: row('trainer', false, 'A newer start of the same run has taken over; end this one.'),
  CHANNEL_LOST: row('policy', true, 'Check that the trainer runs and reaches the rollout service; it may connect again.'),
  WORKER_LOST: row('environment', true, 'Look why the worker ended: memory, a signal, its machine; the rollout runs again on another one.'),
  WORKER_PROTOCOL: row('config', false, 'Install the same version of aworld-train on the worker and its coordinator.'),
  WORKER_AGENT: row(
    'config',
    false,
    'Give the worker the same project and packages as its coordinator; the message names the first difference.',
  ),
  WORKER_NAME: row('config', false, 'Give each worker a name of its own with --name.'),
  WORKER_INVALID: row('environment', false, 'Install the same version on both sides; the message says what could not be read.'),
  WORKER_RESULT_TOO_LARGE: row('agent', false, 'Make tools answer less, or raise maxFrameBytes of the coordinator.'),
  COORDINATOR_UNREACHABLE: row(
    'environment',
    true,
    'Start the coordinator, or correct --coordinator; a worker waits for it as long as --wait says.',
  ),
  MODEL_MISMATCH: row('policy', false, 'Give the trainer and the rollout service the same model folder, or start the service again.'),
  TEMPLATE_MISMATCH: row(
    'policy',
    false,
    'Give the trainer and the rollout service the same tokenizer and chat template; the message shows where they differ.',
  ),
  STORE_LOCKED: row('store', false, 'Wait for the other process, or start a new run with --new.'),
  STORE_CORRUPT: row('store', false, 'Start a new run with --new; the folder is left as it is.'),
  STORE_VERSION: row('store', false, 'Open the run with the version that made it, or start a new run with --new.'),
  STORE_FULL: row('store', true, 'Free space, then run the same command again; the run resumes.'),
  STORE_READ_ONLY: row('store', false, 'Make the run folder writable, or set another runPath.'),
  STORE_CONFLICT: row('store', false, 'The rollout has a newer attempt, a result, or was trained already; drop this write.'),
  CHECKPOINT_CORRUPT: row('trainer', false, 'Delete the checkpoint to fall back on the one before it.'),
  TRAINER_UNKNOWN: row('config', false, "Register a processor under that name, or set trainEngineName: 'local'."),
  TRAINER_NOT_INITIALIZED: row('trainer', false, 'Call validate() or train() of the AgentTrainer; they initialise the processor.'),
  TRAINER_ENVIRONMENT: row('trainer', false, 'Run "aworld-train setup" for the trainer, or name its Python in AWORLD_TRAIN_PYTHON.'),
  TRAINER_FAILED: row('trainer', false, 'Read the reason that is named, and verl.log in the folder of the run.'),
  TRAINER_PROCESS_DIED: row('trainer', true, 'Run the same command again; the run resumes from its last checkpoint.'),
  TRAINER_OUT_OF_MEMORY: row('trainer', false, 'Use smaller batches or shorter sequences, or leave more memory free.'),
  TRAINER_EMPTY_BATCH: row('trainer', false, 'Read why the rollouts failed; nothing was trained.'),
  BATCH_MISMATCH: row('trainer', false, 'Install the tested version of the trainer; its batch is not the rows that it was given.'),
  TRAINER_SAMPLE_INVALID: row('trainer', false, 'Correct the training sample that is named; nothing was trained.'),
  LOSS_INVALID: row('trainer', false, 'Make the loss return { loss, gradient } for every row, of finite numbers; nothing was trained.'),
  TRAINER_NOT_FINITE: row(
    'trainer',
    false,
    'Lower the learning rate, or look for an extreme logprob or advantage; the weights are as before.',
  ),
  CONFIG_INVALID: row('config', false, 'Correct the configuration.'),
  DATASET_INVALID: row('config', false, 'Correct the dataset.'),
  MODULE_INVALID: row('config', false, 'Name an existing module and one of its exports: ./file.ts#name.'),
} as const satisfies Record<string, CatalogueRow>

export type ErrorCode = keyof typeof errorCatalogue

export interface TrainErrorOptions {
  readonly cause?: unknown
  readonly details?: Record<string, unknown>
}

/** An error of the catalogue. The message names the event, the thing concerned and the remedy. */
export class TrainError extends Error {
  readonly code: ErrorCode
  readonly boundary: ErrorBoundary
  readonly retryable: boolean
  readonly details: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, { cause, details }: TrainErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'TrainError'
    this.code = code
    this.boundary = errorCatalogue[code].boundary
    this.retryable = errorCatalogue[code].retryable
    this.details = details
  }

  toRecord(): ErrorRecord {
    const { code, boundary, retryable, message, details } = this
    const source = errorSource(this)
    return { code, boundary, retryable, message, ...(source && { source }), ...(details && { details }) }
  }
}

/**
 * The place in the user's code that threw an error or the cause of one of ours, such as `/project/tool.ts:12`; `undefined` if the stacks
 * have only our own code.
 */
export function errorSource(error: unknown): string | undefined {
  for (let each = error, depth = 0; each != null && depth < 16; each = (each as { cause?: unknown }).cause, depth += 1) {
    // An error of another thread arrives as the text of its stack.
    const stack = typeof each === 'string' ? each : each instanceof TrainError ? undefined : (each as { stack?: unknown }).stack
    const source = typeof stack === 'string' ? sourceOfStack(stack) : undefined
    if (source) return source
  }
  return undefined
}

/** The message of a thrown error, or any other thrown value as text. */
export const errorMessage = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))

/** Converts any thrown value to a TrainError. A foreign one is wrapped under `code` with its message and cause. */
export function toTrainError(error: unknown, code: ErrorCode): TrainError {
  if (error instanceof TrainError) return error
  return new TrainError(code, errorMessage(error) || errorCatalogue[code].remedy, { cause: error })
}

/**
 * The exit code of a command that ends with `error`: 2 if only another configuration would help, 3 if the coordinator of a worker is gone.
 */
export function exitCodeOf(error: unknown): 1 | 2 | 3 {
  if (!(error instanceof TrainError)) return 1
  if (error.code === 'COORDINATOR_UNREACHABLE') return 3
  return error.boundary === 'config' || error.code === 'AGENT_INVALID' || error.code === 'SERVICE_UNAUTHORIZED' ? 2 : 1
}
