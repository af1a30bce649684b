import { styleText } from 'node:util'
import type { Message } from '@aworld-train/core'
import { wrapLabelled } from './text-width.ts'

export interface EpisodeText {
  readonly messages: readonly Message[]
  /** The model that wrote each message, if that is not the policy. */
  readonly models?: readonly (string | null)[] | undefined
  readonly reward: number | null
  /** Most characters shown of one message. */
  readonly maxCharacters?: number
  /** Columns of the terminal, if there is one. */
  readonly columns?: number | undefined
}

/** A conversation for people: one line a message, tool calls as calls, and the reward at the end. */
export function renderEpisode({ messages, models = [], reward, maxCharacters = 300, columns }: EpisodeText): string {
  const width = Math.max(7, ...models.map((model) => model?.length ?? 0)) + 1
  const label = (text: string) => styleText('bold', text.padEnd(width))
  const lines = messages.flatMap((message, index) => renderMessage(message, models[index] ?? 'policy', { label, maxCharacters }))
  lines.push(`${label('reward')}${reward === null ? 'not scored' : styleText(reward > 0 ? 'green' : 'red', String(reward))}`)
  return lines.map((line) => (columns === undefined ? line : wrapLabelled(line, columns, width))).join('\n')
}

interface MessageStyle {
  readonly label: (text: string) => string
  readonly maxCharacters: number
}

function renderMessage(message: Message, speaker: string, { label, maxCharacters }: MessageStyle): string[] {
  if (message.role === 'system' || message.role === 'developer') return []
  const content = clip(message.content ?? '', maxCharacters)
  if (message.role === 'user') return [`${label('task')}${content}`]
  if (message.role === 'tool') return [`${label('')}${styleText('gray', `→ ${content}`)}`]
  const calls = (message.toolCalls ?? []).map(
    (call) => `${label(speaker)}${styleText('cyan', clip(call.name, maxCharacters))}(${clip(call.arguments, maxCharacters)})`,
  )
  return content || calls.length === 0 ? [...calls, `${label(speaker)}${content || styleText('gray', '(empty)')}`] : calls
}

function clip(text: string, maxCharacters: number): string {
  const line = visible(text.replaceAll(/\s+/g, ' ').trim())
  return line.length > maxCharacters ? `${line.slice(0, maxCharacters - 1)}…` : line
}

/** Shows control characters as visible symbols, because a policy may sample escape sequences that move the cursor or clear the screen. */
function visible(text: string): string {
  return text.replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.charCodeAt(0)
    if (code < 0x20) return String.fromCharCode(0x2400 + code)
    return code === 0x7f ? '\u2421' : '\ufffd'
  })
}
