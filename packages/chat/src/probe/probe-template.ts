import { createHash } from 'node:crypto'
import { errorMessage, type Message } from '@aworld-train/core'
import { type Mark, markMessage } from '../continuity/marks.ts'
import { firstStop, maskedGap, type StopPlace } from '../continuity/stop-texts.ts'
import { endsInReasoning, reasoningTagsOf } from '../reasoning-tags.ts'
import { createChatRenderer, type ModelTemplates } from '../render/chat-renderer.ts'
import { type MessageForm, promptIdTexts } from '../render/template-messages.ts'
import { findSyntax } from '../syntax/find-syntax.ts'
import type { TemplateProbe, TurnKind } from '../types.ts'
import { assistant, firstCall, probeTools, secondCall, toolResult, user, words } from './probe-conversations.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export interface ProbeInput {
  readonly templates: ModelTemplates
  /** Tokens known to end a turn. */
  readonly stops: ReadonlyMap<number, string>
  /** Special tokens of the tokenizer. One of them closes a turn if no known stop does. */
  readonly specials?: ReadonlyMap<number, string> | undefined
  readonly now: Date
}

const question = user(words.user)
const next = user(words.nextUser)
const callTurn = assistant('', { toolCalls: [firstCall] })
const result = toolResult(firstCall.id, words.result)

/** Finds out what a template accepts and prints by rendering small conversations. The model's name decides nothing. */
export function probeTemplate({ templates, stops, specials, now }: ProbeInput): TemplateProbe {
  const digest = createHash('sha256')
  const reasoningTags = reasoningTagsOf(templates.default.source + (templates.toolUse?.source ?? ''))
  const form: Mutable<MessageForm> = {
    arguments: 'object',
    emptyContent: '',
    reasoningField: 'reasoning_content',
    idForm: 'any',
    toolNameInResult: false,
    contentParts: false,
    developerRole: false,
    reasoningTags,
  }
  let raised: string | null = null
  /** Renders messages; `null` if the template raises. */
  const attempt = (messages: readonly Message[], withTools: boolean, change: Partial<MessageForm> = {}, generate = false) => {
    const renderer = createChatRenderer(templates, { ...form, ...change })
    try {
      const tools = renderer.toolSet(withTools ? probeTools : [])
      const text = renderer.render({ messages, tools, addGenerationPrompt: generate, now })
      digest.update(`${text}\0`)
      return text
    } catch (error) {
      digest.update('raises\0')
      const { cause = error } = error as { cause?: unknown }
      raised = errorMessage(cause)
      return null
    }
  }
  const shows = (word: string, ...args: Parameters<typeof attempt>) => attempt(...args)?.includes(word) ?? false

  form.contentParts = !shows(words.user, [question], false) && shows(words.user, [question], false, { contentParts: true })
  const called = [question, callTurn, result]
  Object.assign(
    form,
    callForm((change) => attempt(called, true, change)),
  )
  form.developerRole =
    templates.default.source.includes('developer') &&
    shows(words.system, [{ role: 'developer', content: words.system }, question], false, { developerRole: true })
  const printsCalls = shows(words.argument, called, true)
  form.reasoningField = reasoningField(
    (messages, change) => shows(words.reasoning, messages, printsCalls, change),
    printsCalls,
    reasoningTags,
  )
  raised = null
  const callText = attempt(called, true) ?? ''
  const callError = printsCalls ? null : raised
  const tokens = { stops, specials: specials ?? stops }
  const { closers, stops: closing } = probeClosers((messages, withTools) => attempt(messages, withTools), tokens, form, printsCalls)
  const prompt = attempt([question], false, {}, true) ?? ''
  return {
    arguments: printsCalls ? form.arguments : 'none',
    emptyContent: form.emptyContent,
    contentWithCalls: shows(words.answer, [question, { ...callTurn, content: words.answer }, result], true),
    reasoningField: form.reasoningField,
    parallelCalls: parallelCalls((messages) => attempt(messages, true), printsCalls),
    idsInPrompt: promptIdTexts(called, form.idForm).some((id) => callText.includes(id)),
    idForm: form.idForm,
    toolNameInResult: form.toolNameInResult,
    callError,
    toolsPrinted: shows(words.tool, [question], true),
    contentParts: form.contentParts,
    systemRole: shows(words.system, [{ role: 'system', content: words.system }, question], false),
    developerRole: form.developerRole,
    reasoningOpen: endsInReasoning(prompt, reasoningTags),
    closers,
    stops: closing,
    finalStop: finalStop(attempt([question, assistant(words.answer)], false), stops),
    syntax: printsCalls ? syntaxOf(callText, stops) : null,
    digest: digest.digest('hex'),
  }
}

/** The first form of a call with which the template prints its name and its argument unescaped. */
function callForm(attempt: (change: Partial<MessageForm>) => string | null): Partial<MessageForm> {
  const escaped = `\\"${words.argument}\\"`
  for (const emptyContent of ['', null] as const) {
    for (const idForm of ['any', 'alphanumeric-9', 'function-index'] as const) {
      for (const form of ['object', 'string'] as const) {
        const change = { arguments: form, idForm, emptyContent }
        const text = attempt(change)
        const printed = text?.slice(text.indexOf(words.user))
        if (!printed?.includes(words.argument) || !printed.includes(words.tool) || printed.includes(escaped)) continue
        return { ...change, toolNameInResult: printsNameOfResult(attempt, change) }
      }
    }
  }
  return {}
}

function printsNameOfResult(attempt: (change: Partial<MessageForm>) => string | null, change: Partial<MessageForm>): boolean {
  const count = (text: string | null) => (text ?? '').split(words.tool).length
  return count(attempt({ ...change, toolNameInResult: true })) > count(attempt({ ...change, toolNameInResult: false }))
}

function reasoningField(
  shows: (messages: readonly Message[], change: Partial<MessageForm>) => boolean,
  printsCalls: boolean,
  tags: MessageForm['reasoningTags'],
): TemplateProbe['reasoningField'] {
  const turns: readonly Message[] = printsCalls
    ? [question, { ...callTurn, reasoning: words.reasoning }, result]
    : [question, assistant(words.answer, { reasoning: words.reasoning })]
  const fields = ['reasoning_content', 'thinking', ...(tags ? (['inline'] as const) : [])] as const
  return fields.find((field) => shows(turns, { reasoningField: field })) ?? 'none'
}

function parallelCalls(attempt: (messages: readonly Message[]) => string | null, printsCalls: boolean): TemplateProbe['parallelCalls'] {
  if (!printsCalls) return 'none'
  const both = assistant('', { toolCalls: [firstCall, secondCall] })
  const text = attempt([question, both, result, toolResult(secondCall.id, words.secondResult)])
  if (text === null) return 'raises'
  return text.includes(words.secondArgument) ? 'all' : 'first'
}

/** Finds the template's text between the last sampled text of a turn and the first stop token. */
function probeClosers(
  attempt: (messages: readonly Message[], withTools: boolean) => string | null,
  tokens: { readonly stops: ReadonlyMap<number, string>; readonly specials: ReadonlyMap<number, string> },
  form: MessageForm,
  printsCalls: boolean,
): Pick<TemplateProbe, 'closers' | 'stops'> {
  const second = toolResult(secondCall.id, words.secondResult)
  const thought = assistant('', { reasoning: 'a' })
  const turns: readonly (readonly [TurnKind, Message, ...Message[]])[] = [
    ['plain', assistant('a'), next],
    ['reasoning', thought],
    ['reasoning', thought, next],
    ['call', callTurn, result],
    ['calls', assistant('', { toolCalls: [firstCall, secondCall] }), result, second],
  ]
  const closers: Record<string, string | null> = { plain: null, reasoning: null, call: null, calls: null }
  const closing = { ...closers }
  for (const [kind, turn, ...rest] of turns) {
    const withTools = kind === 'call' || kind === 'calls'
    const { marked, marks } = markMessage('Q', turn)
    const messages = [question, marked, ...rest]
    const text = withTools && !printsCalls ? null : attempt(messages, withTools)
    const found = closerIn(text, marks, tokens.stops) ?? (kind === 'plain' ? closerIn(text, marks, tokens.specials) : null)
    if (!found) continue
    closers[kind] = maskedGap(found.gap, promptIdTexts(messages, form.idForm))
    closing[kind] = found.stop.text
  }
  return { closers, stops: closing } as Pick<TemplateProbe, 'closers' | 'stops'>
}

function closerIn(
  text: string | null,
  marks: readonly Mark[],
  stops: ReadonlyMap<number, string>,
): { gap: string; stop: StopPlace } | null {
  const last = marks.at(-1)
  const at = text !== null && last ? text.lastIndexOf(last.text) : -1
  if (text === null || !last || at < 0) return null
  const stop = firstStop(text, stops, at + last.text.length)
  const gap = stop && text.slice(at + last.text.length, stop.start)
  return stop && gap !== null && !mentionsNext(gap) ? { gap, stop } : null
}

/**
 * The stop token after an answer that is the last message. The model stops there, even if the template closes earlier turns differently.
 */
function finalStop(text: string | null, stops: ReadonlyMap<number, string>): string | null {
  const at = text?.lastIndexOf(words.answer) ?? -1
  return text === null || at < 0 ? null : (firstStop(text, stops, at)?.text ?? null)
}

/** Whether a text reaches into the next message. A stop token found only there does not close the turn. */
function mentionsNext(gap: string): boolean {
  return [words.nextUser, words.result, words.secondResult].some((word) => gap.includes(word))
}

/** Finds the row of the table that reads back the call that the template prints. */
function syntaxOf(text: string, stops: ReadonlyMap<number, string>): string | null {
  const from = text.indexOf(words.user) + words.user.length
  const stop = firstStop(text, stops, text.lastIndexOf(words.argument))
  const printed = text.slice(from, stop?.start ?? text.lastIndexOf(words.result))
  return findSyntax({ text: printed, stop: stop?.text ?? '', name: words.tool, argument: words.argument, tools: probeTools })
}
