import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { checkTemplate, loadChatModel } from '@aworld-train/chat'
import { TrainError, type TrainerConfig, type TrainerKeys, type TrainingTask } from '@aworld-train/core'
import { findLongPrompts, type TrainerSettings } from '@aworld-train/training'
import type { Trainer } from './training-plan.ts'

type Config = TrainerConfig<TrainerSettings>

/**
 * Finds the model that a training begins with: a folder, a name on the Hugging Face Hub, or `null` if a warm-up makes it. Throws
 * CONFIG_INVALID.
 */
export function findStartingModel(
  { names, settings, directory }: Config,
  { keys, fromScratch }: { readonly keys: TrainerKeys; readonly fromScratch: boolean },
): { readonly model: string | null; readonly warmUp: string | null } {
  const { warmUp } = settings.model
  const named = names.model ?? settings.model.path
  if (fromScratch && warmUp === null) {
    throw new TrainError('CONFIG_INVALID', 'There is no warm-up to start from; name one in model.warmUp, or leave --from-scratch out.')
  }
  if (named === null && warmUp === null) {
    throw new TrainError(
      'CONFIG_INVALID',
      `There is no model to train; name a folder, or a model of the Hugging Face hub, in ${keys.model}.`,
    )
  }
  if (named === null || fromScratch) return { model: null, warmUp }
  const folder = resolve(directory, named)
  if (existsSync(join(folder, 'config.json'))) return { model: folder, warmUp }
  const isHubName = /^\w[\w.-]*\/[\w.-]+$/.test(named) && !existsSync(folder)
  if (isHubName) return { model: named, warmUp }
  const what = existsSync(folder) && statSync(folder).isDirectory() ? 'has no config.json' : 'is not there'
  throw new TrainError('CONFIG_INVALID', `The model folder ${folder} ${what}; correct ${keys.model}.`)
}

/**
 * Throws TEMPLATE_UNSUPPORTED if the gateway cannot render with the folder's template. Resolves to the reasons why tools cannot be used
 * with it.
 */
export async function checkModelTemplate(config: Config, { keys }: Trainer, model: string): Promise<readonly string[]> {
  if (!config.usesModelTemplate) return []
  const { problems, probe } = await checkTemplate(model, { templateArguments: config.settings.model.templateArguments })
  const withoutTools = probe !== null && probe.arguments !== 'none' && probe.syntax === null
  const fatal = withoutTools ? problems.slice(0, -1) : problems
  if (fatal.length > 0)
    throw new TrainError('TEMPLATE_UNSUPPORTED', `${fatal.join(' ')} Correct ${keys.model}, or the folder.`, {
      details: { directory: model },
    })
  return problems
}

/**
 * Warns of prompts that are longer than the framework takes, if it leaves them out by itself. Throws POLICY_CONTEXT_OVERFLOW if it leaves
 * out none, or all. Prompts that it renders in a special way are not measured.
 */
export async function checkModelPrompts(
  { longestPrompt, settings }: Config,
  { name, keys }: Trainer,
  directory: string,
  tasks: readonly TrainingTask[],
): Promise<readonly string[]> {
  if (longestPrompt === null) return []
  const { tokens: longest, leftOut } = longestPrompt
  const chat = await loadChatModel({ directory, templateArguments: settings.model.templateArguments })
  const long = findLongPrompts(tasks, { chat, contextLength: longest + 1 })
  if (!long) return []
  const which = `${long.tasks.length} of ${tasks.length} prompts have more tokens than ${keys.promptLength}, which is ${longest}: that of task "${long.tasks[0]?.id}" has ${long.tokens}.`
  if (leftOut && long.tasks.length < tasks.length) return [`${which} ${name} leaves them out.`]
  const filter = keys.filterPrompts === null ? '' : `, or set ${keys.filterPrompts} to true where others are left`
  throw new TrainError('POLICY_CONTEXT_OVERFLOW', `${which} Their rollouts would give no row. Raise it${filter}.`)
}
