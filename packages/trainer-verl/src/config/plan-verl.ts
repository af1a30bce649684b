import { checkPlan } from '../check/check-plan.ts'
import { smokeEnvironment, smokeSettings } from '../smoke-settings.ts'
import { deriveKeys } from './derive-keys.ts'
import { valueAt } from './value-at.ts'
import type { VerlConfig, VerlPlan, VerlRun } from './verl-config.ts'
import { formatKey } from './verl-keys.ts'

/**
 * The plan for a start of verl: the user's keys, then those that are filled in or ours, each with its reason; the installed verl composes
 * and, with `validate`, checks it. Starts and writes nothing.
 */
export async function planVerl(
  config: VerlConfig,
  run: VerlRun,
  { validate, signal }: { readonly validate?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<VerlPlan> {
  const { verl } = config
  if (verl === null) throw new Error('A plan needs the installed verl, whose keys it fills in.')
  const smoke = new Map(
    config.settings.smoke
      ? smokeSettings.filter(({ key }) => key !== 'trainer.logger').map(({ key, value, reason }) => [key, { value, why: reason }])
      : [],
  )
  const environment = { ...(config.settings.smoke ? smokeEnvironment : {}), ...config.environment }
  const derived = deriveKeys(config, run, { smoke, environment, defaults: verl.resolved })
  const isDefault = (path: string, value: unknown) => JSON.stringify(valueAt(verl.defaults, path)) === JSON.stringify(value)
  const keys = new Map([...derived.keys].filter(([path, key]) => key.origin === 'user' || !isDefault(path, key.value)))
  const composed = await verl.compose([...keys.values()], { validate, environment, signal })
  const tree = composed.tree ?? {}
  const parts = { tree, keys, config, run }
  const checks = composed.tree === null ? { errors: [], warnings: [] } : checkPlan(parts)
  return {
    ...parts,
    overrides: [...keys.values()].map((key) => formatKey(verl.defaults, key)),
    settings: config.settings,
    environment,
    verl,
    checkpoints: String(valueAt(tree, 'trainer.default_local_dir')),
    steps: stepsOf(tree, run),
    notes: [...derived.notes, ...checks.warnings],
    problems: [...derived.problems, ...checks.errors, ...composed.errors],
  }
}

function stepsOf(tree: Readonly<Record<string, unknown>>, run: VerlRun): number | null {
  const total = valueAt(tree, 'trainer.total_training_steps')
  const epochs = Number(valueAt(tree, 'trainer.total_epochs'))
  const prompts = Number(valueAt(tree, 'data.train_batch_size'))
  const byEpochs = run.train ? Math.floor(run.train.rows / prompts) * epochs : null
  if (typeof total === 'number') return byEpochs === null ? total : Math.min(total, byEpochs)
  return byEpochs
}
