import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { bridgeDirectory } from '@aworld-train/python-bridge'
import { findTraps } from '../check/check-plan.ts'
import { planVerl } from '../config/plan-verl.ts'
import { readVerlConfig } from '../config/read-verl-config.ts'
import { valueAt } from '../config/value-at.ts'
import type { ReadVerlConfigOptions, VerlConfig, VerlConfigSource, VerlPlan } from '../config/verl-config.ts'
import type { PythonReport } from '../python/inspect-python.ts'
import type { MachineNeeds } from './judge-machine.ts'
import { needsOf } from './judge-start.ts'
import type { VerlCheck } from './verl-check.ts'

export interface DiagnoseConfigOptions {
  readonly source: VerlConfigSource
  /** Folder that its relative paths are resolved from, where it is no file. */
  readonly baseDirectory: string
  /** The interpreter that trains. */
  readonly python: PythonReport | null
  /** Has the installed verl read keys; without one it cannot check anything. */
  readonly verl: NonNullable<ReadVerlConfigOptions['verl']>
  readonly env: NodeJS.ProcessEnv
  readonly signal?: AbortSignal | undefined
}

export interface ConfigDiagnosis {
  readonly checks: readonly VerlCheck[]
  /** null where the configuration cannot be read. */
  readonly needs: MachineNeeds | null
}

/** Checks a configuration: its problems, its traps, and the errors of the installed verl. */
export async function diagnoseConfig({
  source,
  baseDirectory,
  python,
  verl,
  env,
  signal,
}: DiagnoseConfigOptions): Promise<ConfigDiagnosis> {
  const config = await readVerlConfig(source, {
    baseDirectory,
    environment: env,
    verl,
  })
  const note = (message: string): VerlCheck => ({ name: 'note', level: 'ok', message })
  if (config.problems.length > 0) return { checks: config.problems.map(problem), needs: null }
  if (config.verl === null) {
    const left = "there is no verl above to read it: only AWorld Train's own keys were checked"
    return { checks: [warning(left), ...config.notes.map(note)], needs: null }
  }
  const plan = await planVerl(config, await standIn(config, baseDirectory), { validate: true, signal })
  const found = findTraps(plan)
  const messages = new Set(found.map(({ message }) => message))
  const checks: VerlCheck[] = [
    ...[...new Set(plan.problems)].map(problem),
    ...found.filter(({ severity }) => severity === 'warning').map(({ message }) => warning(message)),
    ...attentionOf(plan, python),
    ...[...new Set([...config.notes, ...plan.notes])].filter((message) => !messages.has(message)).map(note),
  ]
  if (plan.problems.length === 0) {
    const message = `verl ${config.verl.version} takes it; ${plan.keys.size} keys are not its defaults`
    checks.push({ name: 'config', level: 'ok', message })
  }
  return {
    checks,
    needs: needsOf(plan),
  }
}

const problem = (message: string): VerlCheck => ({ name: 'config', level: 'problem', message })
const warning = (message: string): VerlCheck => ({ name: 'config', level: 'warning', message })

/** More rows than any run trains: how many there are is checked with the dataset. */
const enoughRows = 1_000_000_000

/** Stands for the parts of a run that are not in a configuration. */
async function standIn(config: VerlConfig, directory: string): Promise<VerlPlan['run']> {
  const names = (key: string) => config.keys.has(key)
  const data = (key: string, file: string) => (names(key) ? null : { path: join(directory, file), rows: enoughRows })
  return {
    path: directory,
    name: 'doctor',
    agent: { name: 'agent', module: './agent.ts#agent', directory, source: null },
    train: data('data.train_files', 'train_data.parquet'),
    test: data('data.val_files', 'test_data.parquet'),
    reward: config.settings.reward.native ? null : { path: join(directory, 'reward.ts'), name: 'reward' },
    bridgeDirectory,
    contextLength: await contextLengthOf(config),
  }
}

/** `max_position_embeddings` of a model folder; null for a name at the hub. */
async function contextLengthOf({ keys, directory }: VerlConfig): Promise<number | null> {
  const path = keys.get('actor_rollout_ref.model.path')?.value
  if (typeof path !== 'string') return null
  const text = await readFile(join(resolve(directory, path), 'config.json'), 'utf8').catch(() => 'null')
  const { max_position_embeddings: length } = (JSON.parse(text) ?? {}) as { max_position_embeddings?: unknown }
  return typeof length === 'number' ? length : null
}

/** verl 0.9 asks transformers for FlashAttention unless it is told otherwise (workers/config/model.py). */
function attentionOf({ tree }: VerlPlan, python: PythonReport | null): VerlCheck[] {
  if (!python || valueAt(tree, 'trainer.device') === 'cpu' || python.packages['flash-attn'] != null) return []
  const attention = valueAt(tree, 'actor_rollout_ref.model.override_config.attn_implementation') ?? 'flash_attention_2'
  if (attention !== 'flash_attention_2') return []
  return [
    warning(
      'verl asks for FlashAttention, and flash-attn is not installed: install it into the environment, or set +actor_rollout_ref.model.override_config.attn_implementation=sdpa and actor_rollout_ref.model.use_remove_padding=False.',
    ),
  ]
}
