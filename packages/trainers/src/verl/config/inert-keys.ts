/** A key that verl accepts and that has no effect with an agent of ours. */
export interface InertKey {
  /** The reason, as the rest of a sentence after the key. */
  readonly why: string
  /**
   * Values with which the key can be dropped. Any other is an error, because dropping it would change the training. `null` allows every
   * value.
   */
  readonly neutral: readonly unknown[] | null
  /** Whether the key is still passed to verl. */
  readonly keep: boolean
}

const rollout = 'actor_rollout_ref.rollout'
const ownLoop = "is read by verl's own tool_agent only; tools and turns are the agent's here"

const keys: Readonly<Record<string, InertKey>> = {
  [`${rollout}.mode`]: { why: 'has one value since verl 0.7: rollouts are asynchronous', neutral: null, keep: false },
  [`${rollout}.do_sample`]: {
    why: 'is not read by the V1 trainer, which always samples; set temperature to 0 for greedy decoding',
    neutral: [true],
    keep: false,
  },
  [`${rollout}.repetition_penalty`]: { why: 'is not read by the V1 trainer, which samples with 1.0', neutral: [1, null], keep: false },
  [`${rollout}.min_p`]: { why: 'is not read by the V1 trainer', neutral: [0, null], keep: false },
  [`${rollout}.agent.custom_async_server.path`]: {
    why: 'is not read since verl 0.9; register a RolloutReplica instead',
    neutral: [null, ''],
    keep: false,
  },
  [`${rollout}.agent.custom_async_server.name`]: {
    why: 'is not read since verl 0.9; register a RolloutReplica instead',
    neutral: [null, ''],
    keep: false,
  },
  [`${rollout}.agent.agent_loop_manager_class`]: {
    why: 'would take the place of the loop that talks to this service',
    neutral: [null, ''],
    keep: false,
  },
  [`${rollout}.multi_turn.max_tool_response_length`]: {
    why: `${ownLoop}; set toolAnswers.maxTokens, which is in tokens`,
    neutral: null,
    keep: false,
  },
  [`${rollout}.multi_turn.tool_response_truncate_side`]: {
    why: `${ownLoop}; set toolAnswers.cut to head, tail or middle, the part that is left out`,
    neutral: null,
    keep: false,
  },
  'data.tool_config_path': { why: ownLoop, neutral: null, keep: false },
  'data.function_tool_path': { why: ownLoop, neutral: null, keep: false },
  'data.return_raw_chat': { why: 'is always so since verl 0.7', neutral: [true, null], keep: true },
  'data.val_batch_size': {
    why: 'is not read by the V1 trainer, which launches the whole validation set at once; the rollout service queues it',
    neutral: null,
    keep: true,
  },
  'algorithm.filter_groups.max_num_gen_batches': { why: 'is not read by the V1 trainer', neutral: null, keep: true },
}

const prefixes: readonly (readonly [string, InertKey])[] = [
  [`${rollout}.multi_turn.`, { why: ownLoop, neutral: null, keep: false }],
  [`${rollout}.trace.`, { why: 'is off in the V1 trainer; turns are recorded by the gateway', neutral: null, keep: true }],
  ['critic.', { why: 'is not read without a critic', neutral: null, keep: true }],
]

/** The reason why a key has no effect; `null` if it has one. `critic` says whether the estimator has a critic. */
export function inertKey(path: string, { critic, v1 }: { readonly critic: boolean; readonly v1: boolean }): InertKey | null {
  const row = Object.hasOwn(keys, path) ? keys[path]! : (prefixes.find(([prefix]) => path.startsWith(prefix))?.[1] ?? null)
  if (row && critic && path.startsWith('critic.')) return null
  if (row && !v1 && /V1 trainer/.test(row.why)) return null
  return row
}
