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

/** Most tokens of a script's conversation, far above any script. */
const contextLength = 1 << 20

export interface ScriptedPolicyOptions {
  /** Names the folder whose tokenizer and chat template are used. */
  readonly model: LocalConfig['model']
  readonly script: readonly ScriptedAnswer[]
  /** Folder for the model that is written if none is configured: ChatML, and a token for each byte. */
  readonly directory: string
}

/**
 * A policy that samples the answers of a script in order, as tokens of the model's own tokenizer and template. The call after the last
 * answer fails.
 */
export async function createScriptedPolicy({
  model,
  script,
  directory,
}: ScriptedPolicyOptions): Promise<TokenRoute & { engine: TokenEngine }> {
  if (model.path === null) await writeTinyModel({ directory, template: chatMlTemplate, contextLength })
  const { history, templateArguments } = model
  const chat = await loadChatModel({ directory: model.path ?? directory, history, templateArguments })
  const completions = script.map((answer) => {
    const message = toMessage(answer)
    const tools = (message.toolCalls ?? []).map(({ name }) => ({ name, parameters: { type: 'object' } }))
    return chat.toCompletion({ messages: [{ role: 'user', content: 'x' }, message], tools })
  })
  const stopTokenIds = [...new Set(completions.map((ids) => ids.at(-1) as number))]
  const engine = scriptedEngine({
    model: { name: 'script', directory: model.path ?? directory, contextLength, vocabularySize: contextLength, stopTokenIds },
    script(_request, call) {
      const completion = completions[call]
      if (completion) return { tokenIds: [...completion] }
      const message = `The script has ${script.length} ${script.length === 1 ? 'answer' : 'answers'}, and the agent called its model once more; add an answer, or make the agent stop.`
      throw new TrainError('POLICY_FAILED', message)
    },
  })
  return { kind: 'token', engine, chat, maxPromptBytes: null }
}

function toMessage(answer: ScriptedAnswer): Message {
  if (typeof answer === 'string') return { role: 'assistant', content: answer }
  const { content = null, toolCalls } = answer
  const calls = toolCalls.map(({ name, arguments: values }, index) => ({ id: `call_${index}`, name, arguments: JSON.stringify(values) }))
  return { role: 'assistant', content, toolCalls: calls }
}
