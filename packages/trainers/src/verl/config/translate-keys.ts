import { valueAt } from '@aworld-train/training'
import { inertKey } from './inert-keys.ts'
import type { InstalledVerl } from './installed-verl.ts'
import { renamedKey } from './renamed-keys.ts'
import type { VerlKey } from './verl-config.ts'
import { elsewhere, kindOfKey, suggestKey } from './verl-keys.ts'

/** A key as the user wrote it. */
export interface ConfigKey {
  readonly path: string
  readonly value: unknown
  /** The override, if it was written as one. */
  readonly text?: string
  /** The value with its references replaced, if it has any and verl is installed. */
  readonly resolved?: unknown
  /** Its place, such as `run.sh line 65`. */
  readonly where: string
  /** Whether the user asked to add a key that is not in verl's YAML. */
  readonly added: boolean
}

export interface KeyTranslation {
  readonly keys: Map<string, VerlKey>
  /** Keys that AWorld Train follows, by verl's path: turns, agent, reward, files. */
  readonly taken: Map<string, unknown>
  readonly notes: string[]
  readonly problems: string[]
}

const rollout = 'actor_rollout_ref.rollout'

/** verl's keys that AWorld Train follows instead of verl. verl does not see them, or sees another value. */
const takenKeys: ReadonlySet<string> = new Set([
  `${rollout}.multi_turn.max_assistant_turns`,
  `${rollout}.multi_turn.max_user_turns`,
  `${rollout}.agent.agent_loop_config_path`,
  `${rollout}.agent.default_agent_loop`,
])

/** Keys that are filled in if they are empty. */
const autoFilled: ReadonlySet<string> = new Set([
  'data.train_files',
  'data.val_files',
  `${rollout}.agent.agent_loop_config_path`,
  `${rollout}.agent.default_agent_loop`,
  'reward.custom_reward_function.path',
  'reward.custom_reward_function.name',
  'trainer.default_local_dir',
])

const isBlank = (value: unknown) => value === null || value === '' || value === undefined || (Array.isArray(value) && value.length === 0)
const show = (value: unknown) => JSON.stringify(value)

/**
 * Translates keys of any verl since 0.5 to current ones. Reports keys that were renamed, have no effect or, if verl is installed, are
 * unknown to it.
 */
export function translateKeys(configKeys: readonly ConfigKey[], { verl }: { readonly verl: InstalledVerl | null }): KeyTranslation {
  const keys = new Map<string, VerlKey>()
  const taken = new Map<string, unknown>()
  const notes: string[] = []
  const problems: string[] = []
  const last = new Map(configKeys.map((key) => [key.path, key]))
  const estimator = last.get('algorithm.adv_estimator')?.value ?? 'grpo'
  const state = {
    critic: estimator === 'gae' || last.get('critic.enable')?.value === true,
    v1: last.get('trainer.use_v1')?.value !== false,
  }
  const inertNotes = new Map<string, string[]>()
  const isDefault = (path: string, value: unknown) =>
    verl !== null && JSON.stringify(valueAt(verl.resolved, path)) === JSON.stringify(value)

  for (const { path: old, value, resolved, where, added } of last.values()) {
    const renamed = renamedKey(old)
    if (renamed && (value === null || renamed.neutral?.includes(value) || isDefault(old, value))) continue
    if (renamed?.to && autoFilled.has(renamed.to) && isBlank(value)) continue
    if (renamed?.to === null) {
      if (renamed.neutral || old.startsWith('async_training.')) {
        problems.push(`${old} is ${show(value)} (${where}), and there is no such setting since verl ${renamed.since}; leave it out.`)
      } else notes.push(`${old} is gone since verl ${renamed.since} and was left out.`)
      continue
    }
    const path = renamed ? renamed.to! : old
    if (renamed) {
      if (last.has(path)) {
        notes.push(`${old} (${where}) gives way to ${path}, which is its name since verl ${renamed.since} and is set too.`)
        continue
      }
      notes.push(`${old} is ${path} since verl ${renamed.since}.`)
    }
    if (path.endsWith('_target_') && (verl === null || kindOfKey(verl.defaults, path) === 'listed')) continue
    if (autoFilled.has(path) && isBlank(value)) continue
    if (takenKeys.has(path)) {
      if (!isBlank(value)) taken.set(path, value)
      continue
    }
    const inert = inertKey(path, state)
    if (inert) {
      if (inert.neutral && !inert.neutral.includes(value)) {
        problems.push(`${path} is ${show(value)} (${where}), which ${inert.why}. Leave it out.`)
        continue
      }
      if (!inert.neutral && !isBlank(value) && !isDefault(path, value))
        inertNotes.set(inert.why, [...(inertNotes.get(inert.why) ?? []), path])
      if (!inert.keep) continue
    }
    if (verl !== null && kindOfKey(verl.defaults, path) === 'unknown') {
      const near = added ? '' : suggestKey(verl.defaults, path)
      if (near) problems.push(`${path} (${where}) is no key of verl ${verl.version}.${near} To add it all the same, write ++${path}.`)
      else
        notes.push(
          `${path} (${where}) stands in no file of verl ${verl.version}; it is added all the same.${elsewhere(verl.defaults, path)}`,
        )
    }
    keys.set(path, { path, value, ...(resolved === undefined ? {} : { resolved }), origin: 'user', why: where })
  }
  for (const [why, paths] of inertNotes)
    notes.push(`${shorten(paths)} ${paths.length > 1 ? why.replace(/^(is|has) /, (verb) => (verb === 'is ' ? 'are ' : 'have ')) : why}.`)
  correctUnread(keys, notes)
  return { keys, taken, notes, problems }
}

/** Moves values that verl accepts but reads from another place. */
function correctUnread(keys: Map<string, VerlKey>, notes: string[]): void {
  const actor = 'actor_rollout_ref.actor'
  const clip = keys.get(`${actor}.clip_ratio`)
  const bounds = [`${actor}.clip_ratio_low`, `${actor}.clip_ratio_high`]
  const unset = bounds.filter((path) => !keys.has(path))
  if (clip && unset.length > 0) {
    for (const path of unset) keys.set(path, { ...clip, path, why: `${clip.why}, as ${actor}.clip_ratio` })
    notes.push(
      `${actor}.clip_ratio is read by verl only where clip_ratio_low and clip_ratio_high are null; it was set for ${unset.map((path) => path.split('.').at(-1)).join(' and ')}.`,
    )
  }
  const importance = keys.get('algorithm.rollout_correction.rollout_is')
  if (
    !importance &&
    keys.has('algorithm.rollout_correction.rollout_is_threshold') &&
    keys.get('algorithm.rollout_correction.rollout_is_threshold')!.why !== ''
  ) {
    const threshold = keys.get('algorithm.rollout_correction.rollout_is_threshold')!
    if (!keys.has('algorithm.rollout_correction.rollout_rs')) {
      keys.set('algorithm.rollout_correction.rollout_is', {
        path: 'algorithm.rollout_correction.rollout_is',
        value: 'token',
        origin: 'derived',
        why: `a threshold is set (${threshold.why}), which weights tokens`,
      })
    }
  }
}

const shorten = (paths: readonly string[]) =>
  paths.length > 3 ? `${paths.slice(0, 2).join(', ')} and ${paths.length - 2} more` : paths.join(' and ')
