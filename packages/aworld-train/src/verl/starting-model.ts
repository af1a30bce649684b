import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { checkTemplate, loadChatModel } from '@aworld-train/chat'
import { TrainError, type TrainingTask } from '@aworld-train/protocol'
import { findLongPrompts } from '@aworld-train/run'
import { resolveKey, type VerlConfig, valueAt } from '@aworld-train/trainer-verl'

/** The model that a training begins with: a folder, a name of the Hugging Face hub, or `null` where a warm-up makes it. Throws CONFIG_INVALID. */
export function findStartingModel(
  config: VerlConfig,
  { fromScratch }: { readonly fromScratch: boolean },
): { readonly model: string | null; readonly warmUp: string | null } {
  const { warmUp } = config.settings.model
  const named = stringAt(config, 'actor_rollout_ref.model.path') ?? config.settings.model.path
  if (fromScratch && warmUp === null) {
    throw new TrainError('CONFIG_INVALID', 'There is no warm-up to start from; name one in model.warmUp, or leave --from-scratch out.')
  }
  if (named === null && warmUp === null) {
    throw new TrainError(
      'CONFIG_INVALID',
      'There is no model to train; name a folder, or a model of the Hugging Face hub, in actor_rollout_ref.model.path.',
    )
  }
  if (named === null || fromScratch) return { model: null, warmUp }
  const folder = resolve(config.directory, named)
  if (existsSync(join(folder, 'config.json'))) return { model: folder, warmUp }
  const isHubName = /^\w[\w.-]*\/[\w.-]+$/.test(named) && !existsSync(folder)
  if (isHubName) return { model: named, warmUp }
  const what = existsSync(folder) && statSync(folder).isDirectory() ? 'has no config.json' : 'is not there'
  throw new TrainError('CONFIG_INVALID', `The model folder ${folder} ${what}; correct actor_rollout_ref.model.path.`)
}

/** Throws TEMPLATE_UNSUPPORTED for a folder that the gateway cannot render with; resolves with the reasons why tools cannot be used with it. */
export async function checkModelTemplate(config: VerlConfig, model: string): Promise<readonly string[]> {
  if (stringAt(config, 'actor_rollout_ref.model.custom_chat_template') !== null) return []
  const { problems, probe } = await checkTemplate(model, { templateArguments: config.settings.model.templateArguments })
  const withoutTools = probe !== null && probe.arguments !== 'none' && probe.syntax === null
  const fatal = withoutTools ? problems.slice(0, -1) : problems
  if (fatal.length > 0)
    throw new TrainError('TEMPLATE_UNSUPPORTED', `${fatal.join(' ')} Correct actor_rollout_ref.model.path, or the folder.`, {
      details: { directory: model },
    })
  return problems
}

/**
 * Warnings about prompts longer than `data.max_prompt_length`, which verl leaves out by itself; throws
 * POLICY_CONTEXT_OVERFLOW where it leaves out none, or all. Prompts that verl renders in a special way are not measured.
 */
export async function checkModelPrompts(config: VerlConfig, directory: string, tasks: readonly TrainingTask[]): Promise<readonly string[]> {
  const keys = ['data.custom_cls.path', 'actor_rollout_ref.model.custom_chat_template']
  if (config.verl === null || keys.some((key) => stringAt(config, key) !== null)) return []
  const longest = Number(resolveKey(config, 'data.max_prompt_length') ?? valueAt(config.verl.resolved, 'data.max_prompt_length'))
  const chat = await loadChatModel({ directory, templateArguments: config.settings.model.templateArguments })
  const long = findLongPrompts(tasks, { chat, contextLength: longest + 1 })
  if (!long) return []
  const which = `${long.tasks.length} of ${tasks.length} prompts have more tokens than data.max_prompt_length, which is ${longest}: that of task "${long.tasks[0]?.id}" has ${long.tokens}.`
  if (resolveKey(config, 'data.filter_overlong_prompts') === true && long.tasks.length < tasks.length)
    return [`${which} verl leaves them out.`]
  throw new TrainError(
    'POLICY_CONTEXT_OVERFLOW',
    `${which} Their rollouts would give no row. Raise it, or set data.filter_overlong_prompts to true where others are left.`,
  )
}

/** A key's text; `null` where it has none. */
export const stringAt = (config: VerlConfig, path: string): string | null => {
  const value = resolveKey(config, path)
  return typeof value === 'string' && value !== '' ? value : null
}
