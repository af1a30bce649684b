import type { DrivenConfig, DrivenPlan } from '@aworld-train/core'
import { isTree, type KeyTree, type Stratify } from '@aworld-train/training'
import type { ArealSettings } from './areal-settings.ts'

/** A configuration in AReaL's keys, in ours, or both. */
export interface ArealConfig extends DrivenConfig<ArealSettings> {
  /** Keys of AReaL's PPOConfig, nested as in its YAML. */
  readonly fields: KeyTree
  /** How tasks are drawn for a batch; `null` draws from all alike. */
  readonly stratify: Stratify | null
  /** Steps in which the learning rate rises; AReaL counts a part of all. */
  readonly warmupSteps: number | null
  /** How often an update goes over its batch. */
  readonly passes: number
  /** Whether sampler and trainer round alike. */
  readonly exact: boolean
}

/** What `python -m aworld_train_bridge.areal` is started with; its shape stands in that module. */
export interface ArealPlan extends DrivenPlan {
  readonly path: string
  readonly model: string
  readonly fields: KeyTree
  readonly stratify: Stratify | null
  readonly seed: number
  /** Whether tasks are drawn here, for as many steps as there are; else by AReaL, for its epochs. */
  readonly drawn: boolean
  readonly before: boolean
  readonly passes: number
  readonly templateArguments: KeyTree
  readonly deadlineSeconds: number | null
}

/** The value at a dotted path; `undefined` where there is none. */
export const valueAt = (tree: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((node, name) => (isTree(node) ? node[name] : undefined), tree)

/** A number at a dotted path; `fallback` where there is none, or an interpolation. */
export function numberAt<Fallback>(tree: unknown, path: string, fallback: Fallback): number | Fallback {
  const value = valueAt(tree, path)
  return typeof value === 'number' ? value : fallback
}
