import { setAt } from '@aworld-train/training'
import { checkPlan } from '../check/check-plan.ts'
import { smokeEnvironment, smokeSettings } from '../smoke-settings.ts'
import { deriveKeys } from './derive-keys.ts'
import { formatOverride } from './hydra-override.ts'
import { resolveTree, valueAt } from './omega.ts'
import type { VerlConfig, VerlKey, VerlPlan, VerlRun } from './verl-config.ts'
import { kindOfKey } from './verl-schema.ts'

/** The plan for a start of verl: the user's keys, then those that are filled in or ours, each with its reason. Starts and writes nothing. */
export function planVerl(config: VerlConfig, run: VerlRun): VerlPlan {
  const smoke = new Map(
    config.settings.smoke
      ? smokeSettings.filter(({ key }) => key !== 'trainer.logger').map(({ key, value, reason }) => [key, { value, why: reason }])
      : [],
  )
  const environment = { ...(config.settings.smoke ? smokeEnvironment : {}), ...config.environment }
  const derived = deriveKeys(config, run, { smoke, environment })
  const keys = new Map([...derived.keys].filter(([path, key]) => key.origin === 'user' || !isDefault(config, path, key.value)))
  const tree = resolveTree(treeOf(config, keys))
  const checks = checkPlan({ tree, keys, config, run })
  return {
    overrides: [...keys.values()].map((key) => formatKey(config, key)),
    keys,
    tree,
    settings: config.settings,
    environment,
    checkpoints: String(valueAt(tree, 'trainer.default_local_dir')),
    steps: stepsOf(tree, run),
    config,
    run,
    notes: [...derived.notes, ...checks.warnings],
    problems: [...derived.problems, ...checks.errors],
  }
}

const isDefault = ({ schema }: VerlConfig, path: string, value: unknown) =>
  JSON.stringify(valueAt(schema.defaults, path)) === JSON.stringify(value)

/** One override: `++` where verl's YAML does not name the key, so that Hydra still refuses what it does not know elsewhere. */
export function formatKey({ schema }: Pick<VerlConfig, 'schema'>, { path, value }: Pick<VerlKey, 'path' | 'value'>): string {
  return formatOverride(path, value, kindOfKey(schema, path) === 'listed' || kindOfKey(schema, path) === 'group' ? '' : '++')
}

/** verl's defaults with the keys laid over them; references are kept. */
function treeOf({ schema }: VerlConfig, keys: ReadonlyMap<string, VerlKey>): Record<string, unknown> {
  const tree = structuredClone(schema.defaults) as Record<string, unknown>
  for (const { path, value } of keys.values()) {
    if (kindOfKey(schema, path) === 'group') continue
    setAt(tree, path.split('.'), structuredClone(value))
  }
  return tree
}

function stepsOf(tree: Readonly<Record<string, unknown>>, run: VerlRun): number | null {
  const total = valueAt(tree, 'trainer.total_training_steps')
  const epochs = Number(valueAt(tree, 'trainer.total_epochs'))
  const prompts = Number(valueAt(tree, 'data.train_batch_size'))
  const byEpochs = run.train ? Math.floor(run.train.rows / prompts) * epochs : null
  if (typeof total === 'number') return byEpochs === null ? total : Math.min(total, byEpochs)
  return byEpochs
}
