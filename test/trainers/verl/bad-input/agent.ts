import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentFunction, AgentFunctionContext } from '@aworld-train/agent'

interface Message {
  readonly role: string
  readonly content: string | null
}

interface Choice {
  readonly message: Message
  readonly finish_reason: string
}

const user = (content: string): Message => ({ role: 'user', content })

/** One model call; `null` where the gateway refuses it. */
async function ask(context: AgentFunctionContext, messages: readonly Message[], tokens: number): Promise<Choice | null> {
  const { baseUrl, apiKey, model, signal } = context
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model, messages, max_tokens: tokens }),
    signal,
  })
  return response.ok ? ((await response.json()) as { choices: Choice[] }).choices[0]! : null
}

/** Goes on until the gateway refuses the next turn, or for so many. */
async function converse(context: AgentFunctionContext, question: string, turns: number): Promise<string | null> {
  const messages = [user(question)]
  for (let turn = 0; turn < turns; turn++) {
    const choice = await ask(context, messages, 24)
    if (!choice) break
    messages.push(choice.message, user('Go on.'))
  }
  return messages.at(-2)?.content ?? null
}

/** Does what the task's name says, in the first rollout of a group only, so that others of it survive. */
export const faultyAgent: AgentFunction = async (task, context) => {
  const fault = context.rollout.endsWith('/0') ? task.id.replace(/-\d+$/, '') : 'good'
  if (fault === 'silent') return null
  // 8 tokens a word: more than a prompt may have, and more than the whole context.
  const words = fault === 'prompt' ? 22 : fault === 'flood' ? 300 : 0
  if (words > 0) return (await ask(context, [user('element '.repeat(words))], 8))?.message.content ?? null
  if (fault === 'response') return await converse(context, String(task.input), 1_000)
  let choice = await ask(context, [user(String(task.input))], 60)
  if (fault === 'throws') {
    // After a turn that was cut, what an agent throws is laid on the cut.
    while (choice?.finish_reason !== 'stop') choice = await ask(context, [user(String(task.input))], 60)
    throw new Error('The agent threw.')
  }
  // Deaf to its signal: it answers after its deadline.
  if (fault === 'hangs') await sleep(5_000)
  return choice?.message.content ?? null
}

/** Every second task takes long, so that weights change in the middle of its turns. */
export const unevenAgent: AgentFunction = (task, context) =>
  converse(context, String(task.input), Number(task.id.split('-').at(-1)) % 2 === 0 ? 1 : 40)
