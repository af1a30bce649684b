import { checkTemplate, loadChatModel } from '@aworld-train/chat'
import { TrainError, type TrainerConfig, type TrainingTask } from '@aworld-train/core'
import { findLongPrompts, type TrainerSettings } from '@aworld-train/training'
import type { Trainer } from './training-plan.ts'

type Config = TrainerConfig<TrainerSettings>

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
