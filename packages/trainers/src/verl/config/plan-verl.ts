import type { PlanInputs, PlanOptions } from '@aworld-train/core'
import { valueAt } from '@aworld-train/training'
import { checkPlan } from '../check/check-plan.ts'
import { smokeEnvironment, smokeSettings } from '../smoke-settings.ts'
import { deriveKeys } from './derive-keys.ts'
import type { VerlConfig, VerlPlan } from './verl-config.ts'
import { formatKey } from './verl-keys.ts'

/**
 * Plans a start of verl: the user's keys, then those that are filled in or ours, each with its reason. The installed verl composes and,
 * with `validate`, checks the plan. Starts and writes nothing.
 */
export async function planVerl(read: VerlConfig, run: PlanInputs, { validate, signal }: PlanOptions = {}): Promise<VerlPlan> {
  const config = run.model === undefined ? read : withModel(read, run.model)
  const { verl } = config
  if (verl === null) throw new Error('A plan needs the installed verl, whose keys it fills in.')
  const smoke = new Map(
    config.settings.smoke
      ? smokeSettings.filter(({ key }) => key !== 'trainer.logger').map(({ key, value, reason }) => [key, { value, why: reason }])
      : [],
  )
  const environment = config.settings.smoke ? smokeEnvironment : {}
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
    version: verl.version,
    checkpoints: String(valueAt(tree, 'trainer.default_local_dir')),
    steps: stepsOf(tree, run),
    limits: {
      maxPromptTokens: numberAt(tree, 'data.max_prompt_length'),
      maxResponseTokens: numberAt(tree, 'data.max_response_length'),
    },
    evaluation: evaluationOf(tree),
    // In bf16 the two sides differ by more than any tolerance that could find a wrong token.
    logprobTolerance: config.settings.smoke ? config.settings.logprobCheck.tolerance : null,
    notes: derived.notes,
    warnings: checks.warnings,
    problems: [...derived.problems, ...checks.errors, ...composed.errors],
  }
}

/** The configuration with the model that the training begins with. */
function withModel(config: VerlConfig, model: string): VerlConfig {
  const path = 'actor_rollout_ref.model.path'
  const key = config.keys.get(path)
  const keys = new Map(config.keys)
  return {
    ...config,
    keys: keys.set(path, { path, value: model, origin: key ? 'user' : 'derived', why: key?.why ?? 'the starting model' }),
  }
}

type Tree = VerlPlan['tree']

function numberAt(tree: Tree, path: string): number {
  const value = valueAt(tree, path)
  return typeof value === 'number' ? value : Number.MAX_SAFE_INTEGER
}

/** verl 0.9 reads no do_sample here (experimental/agent_loop/agent_loop.py). */
function evaluationOf(tree: Tree): VerlPlan['evaluation'] {
  const at = (name: string) => valueAt(tree, `actor_rollout_ref.rollout.val_kwargs.${name}`)
  return {
    samples: Number(at('n') ?? 1),
    temperature: Number(at('temperature') ?? 0),
    topP: Number(at('top_p') ?? 1),
    topK: Math.max(0, Number(at('top_k') ?? 0)),
  }
}

function stepsOf(tree: Tree, run: PlanInputs): number | null {
  const total = valueAt(tree, 'trainer.total_training_steps')
  const epochs = Number(valueAt(tree, 'trainer.total_epochs'))
  const prompts = Number(valueAt(tree, 'data.train_batch_size'))
  const byEpochs = run.train ? Math.floor(run.train.rows / prompts) * epochs : null
  if (typeof total === 'number') return byEpochs === null ? total : Math.min(total, byEpochs)
  return byEpochs
}
