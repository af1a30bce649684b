import { isTree, type KeyTree } from '@aworld-train/training'
import type { ModuleConfig, ModulePlan } from '../../shared/training/module-config.ts'
import type { ArealSettings } from './areal-settings.ts'

/** A configuration in AReaL's keys, nested as in its YAML, in ours, or both. */
export interface ArealConfig extends ModuleConfig<ArealSettings> {
  /** Steps in which the learning rate rises. AReaL counts a fraction of all steps. */
  readonly warmupSteps: number | null
  /** Number of passes of an update over its batch. */
  readonly passes: number
}

/** The plan that `python -m aworld_train_bridge.areal` is started with. That module defines its shape. */
export interface ArealPlan extends ModulePlan {
  /** Whether tasks are drawn here, for as many steps as there are; otherwise AReaL draws them, for its epochs. */
  readonly drawn: boolean
  readonly before: boolean
  readonly passes: number
  readonly keepCheckpoints: number | null
}

/** The value at a dotted path; `undefined` if there is none. */
export const valueAt = (tree: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((node, name) => (isTree(node) ? node[name] : undefined), tree)

/** A number at a dotted path; `fallback` if there is none, or an interpolation. */
export function numberAt<Fallback>(tree: unknown, path: string, fallback: Fallback): number | Fallback {
  const value = valueAt(tree, path)
  return typeof value === 'number' ? value : fallback
}

/** Longest response of a row: AReaL's key, or half of the context. */
export const responseTokens = (fields: KeyTree, context: number | null): number =>
  numberAt(fields, 'gconfig.max_new_tokens', context === null ? 256 : Math.floor(context / 2))
