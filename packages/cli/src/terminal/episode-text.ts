import { styleText } from 'node:util'
import { type Episode, type InvocationStart, invocationTree, type Message, type Trajectory } from '@aworld-train/core'
import { counted } from './counted.ts'
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
  const { lines, width, label } = renderMessages({ messages, models, maxCharacters })
  return [...lines, `${label('reward')}${renderReward(reward)}`].map((line) => wrapped(line, columns, width)).join('\n')
}

/** Below this level, an invocation is not indented any more. */
const deepest = 8

/** The invocations of an episode as a tree: what started each, and its turns as a conversation. An answer that no turn gave stands below it. */
export function renderInvocations(
  { trajectories, answer, reward }: Pick<Episode, 'trajectories' | 'answer' | 'reward'>,
  columns?: number,
): string {
  const blocks = invocationTree(trajectories).map(({ invocation, depth }) =>
    renderInvocation(invocation, renderStarts(invocation.startedBy), 2 * Math.min(depth, deepest), columns),
  )
  const isWritten = trajectories.some(({ turns }) => turns.some(({ message }) => message.content === answer))
  const ends = [
    ...(answer === null || isWritten ? [] : [`${styleText('bold', 'answer')}  ${clip(answer, 300)}`]),
    `${styleText('bold', 'reward')}  ${renderReward(reward)}`,
  ]
  return [...blocks.flat(), ...ends.map((line) => indented(line, columns, { by: 0, width: 8 }))].join('\n')
}

/** What a reward asked of frozen models, and what that cost; '' if it asked none. */
export function renderRewardCalls({ rewardTrajectories = [] }: Pick<Episode, 'rewardTrajectories'>, columns?: number): string {
  return rewardTrajectories
    .flatMap((invocation) => {
      const costs = invocation.turns.flatMap(({ cost }) => cost ?? [])
      const spent = costs.length === 0 ? '' : `, $${costs.reduce((sum, cost) => sum + cost, 0).toFixed(4)}`
      return renderInvocation(invocation, spent, 0, columns)
    })
    .join('\n')
}

/** The title of an invocation, with `note` at its end, and its turns as a conversation, `level` columns to the right. */
function renderInvocation(
  { id, turns }: Pick<Trajectory, 'id' | 'turns'>,
  note: string,
  level: number,
  columns: number | undefined,
): string[] {
  const parts = turns.map(({ messagesDelta, message, model = null }) => ({ messages: [...messagesDelta, message], model }))
  const { lines, width } = renderMessages({
    messages: parts.flatMap(({ messages }) => messages),
    models: parts.flatMap(({ messages, model }) => messages.map(() => model)),
    maxCharacters: 300,
  })
  const title = `${styleText('bold', visible(id))}  ${counted(turns.length, 'turn')}${note}`
  return [indented(title, columns, { by: level, width: 2 }), ...lines.map((line) => indented(line, columns, { by: level + 2, width }))]
}

function renderStarts(startedBy: readonly InvocationStart[]): string {
  const [first] = startedBy
  if (!first) return ''
  const turn = first.turn === null || first.toolCall === null ? '' : `, turn ${first.turn}`
  const names = startedBy.map(({ trajectory }) => visible(trajectory)).join(' and ')
  return `, ${first.toolCall === null ? 'after' : 'asked for by'} ${names}${turn}`
}

const renderReward = (reward: number | null) => (reward === null ? 'not scored' : styleText(reward > 0 ? 'green' : 'red', String(reward)))

const indented = (line: string, columns: number | undefined, { by, width }: { readonly by: number; readonly width: number }) =>
  wrapped(line, columns === undefined ? undefined : columns - by, width).replaceAll(/^/gm, ' '.repeat(by))

const wrapped = (line: string, columns: number | undefined, width: number) =>
  columns === undefined ? line : wrapLabelled(line, columns, width)

function renderMessages({
  messages,
  models,
  maxCharacters,
}: Required<Pick<EpisodeText, 'messages' | 'maxCharacters'>> & { models: readonly (string | null)[] }) {
  const width = Math.max(7, ...models.map((model) => model?.length ?? 0)) + 1
  const label = (text: string) => styleText('bold', text.padEnd(width))
  const lines = messages.flatMap((message, index) => renderMessage(message, models[index] ?? 'policy', { label, maxCharacters }))
  return { lines, width, label }
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
export function visible(text: string): string {
  return text.replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.charCodeAt(0)
    if (code < 0x20) return String.fromCharCode(0x2400 + code)
    return code === 0x7f ? '\u2421' : '\ufffd'
  })
}
