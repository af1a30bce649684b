import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import { type Message, type TokenEngine, TrainError } from '@aworld-train/core'
import type { TokenRoute } from '@aworld-train/gateway'
import { scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import type { LocalConfig } from '@aworld-train/training'

/** The policy's answer to one call: a text, or tool calls with a text before them. */
export type ScriptedAnswer =
  | string
  | {
      readonly content?: string
      readonly toolCalls: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[]
    }

/**
 * Answers of the policy, one for each of its calls. One list is for a program in which agents do not work at once. Else it is a list for each
 * agent by its name, from the beginning of which each of its invocations takes its answers; a list under the id of an invocation, such as
 * `reader:planner.0.1`, is for that one alone.
 */
export type Script = readonly ScriptedAnswer[] | Readonly<Record<string, readonly ScriptedAnswer[]>>

/** Most tokens of a script's conversation, far above any script. */
const contextLength = 1 << 20

export interface ScriptedPolicyOptions {
  /** Names the folder whose tokenizer and chat template are used. */
  readonly model: LocalConfig['model']
  readonly script: Script
  /** Names of the agents of the program. */
  readonly agents: readonly string[]
  /** Folder for the model that is written if none is configured: ChatML, and a token for each byte. */
  readonly directory: string
}

/**
 * A policy that samples the answers of a script in order, as tokens of the model's own tokenizer and template. The call after the last
 * answer fails. Rejects with CONFIG_INVALID for a script that names another agent than those of the program.
 */
export async function createScriptedPolicy({
  model,
  script,
  agents,
  directory,
}: ScriptedPolicyOptions): Promise<TokenRoute & { engine: TokenEngine }> {
  const lists = new Map(isList(script) ? [['', script] as const] : Object.entries(script))
  for (const name of isList(script) ? [] : lists.keys()) refuseStranger(name, agents)
  if (model.path === null) await writeTinyModel({ directory, template: chatMlTemplate, contextLength })
  const { history, templateArguments } = model
  const chat = await loadChatModel({ directory: model.path ?? directory, history, templateArguments })
  const toCompletion = (answer: ScriptedAnswer) => {
    const message = toMessage(answer)
    const tools = (message.toolCalls ?? []).map(({ name }) => ({ name, parameters: { type: 'object' } }))
    return chat.toCompletion({ messages: [{ role: 'user', content: 'x' }, message], tools })
  }
  const completions = new Map(Array.from(lists, ([name, answers]) => [name, answers.map(toCompletion)]))
  const stopTokenIds = [...new Set([...completions.values()].flat().map((ids) => ids.at(-1) as number))]
  const calls = new Map<string, number>()
  const engine = scriptedEngine({
    model: { name: 'script', directory: model.path ?? directory, contextLength, vocabularySize: contextLength, stopTokenIds },
    script({ origin }) {
      const { trajectory = '', agent = '' } = origin ?? {}
      const [caller, name] = isList(script) ? ['', ''] : [trajectory, completions.has(trajectory) ? trajectory : agent]
      const call = calls.get(caller) ?? 0
      calls.set(caller, call + 1)
      const answers = completions.get(name)
      if (!answers) {
        const message = `The script has no answers for the invocation "${caller}"; give it a list under "${agent}", or under this id.`
        throw new TrainError('POLICY_FAILED', message)
      }
      if (answers[call]) return { tokenIds: [...answers[call]] }
      const list = `${answers.length} ${answers.length === 1 ? 'answer' : 'answers'}${isList(script) ? '' : ` for "${name}"`}`
      const who = isList(script) ? 'the agent' : `the invocation "${caller}"`
      const message = `The script has ${list}, and ${who} called its model once more; add an answer, or make the agent stop.`
      throw new TrainError('POLICY_FAILED', message)
    },
  })
  return { kind: 'token', engine, chat, maxPromptBytes: null }
}

const isList = (script: Script): script is readonly ScriptedAnswer[] => Array.isArray(script)

/** Throws CONFIG_INVALID for a name that is neither an agent nor the id of an invocation of one. */
function refuseStranger(name: string, agents: readonly string[]): void {
  if (agents.some((agent) => name === agent || name.startsWith(`${agent}:`))) return
  const names = agents.map((agent) => `"${agent}"`).join(', ')
  throw new TrainError('CONFIG_INVALID', `The script has answers for "${name}", which is no agent of the program; its agents are ${names}.`)
}

function toMessage(answer: ScriptedAnswer): Message {
  if (typeof answer === 'string') return { role: 'assistant', content: answer }
  const { content = null, toolCalls } = answer
  const calls = toolCalls.map(({ name, arguments: values }, index) => ({ id: `call_${index}`, name, arguments: JSON.stringify(values) }))
  return { role: 'assistant', content, toolCalls: calls }
}
