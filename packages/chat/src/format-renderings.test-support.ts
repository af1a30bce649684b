import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type FormatFixture, type FormatName, formatFixtures, formatNames, formatTemplate } from './format-fixtures.test-support.ts'
import { type JsonNode, readJson } from './json/json-text.ts'
import { type ChatTemplate, compileTemplate, type TemplateArguments } from './render/chat-template.ts'
import { Dictionary, fromJson, type Value } from './render/values.ts'

/** The clock of every compared rendering. */
export const renderingClock = new Date(2026, 6, 4, 15, 6, 7)

export interface FormatVariant {
  readonly name: string
  readonly format: FormatName
  readonly arguments: TemplateArguments
}

/** Every format, plain and with each set of its template arguments. */
export const formatVariants: readonly FormatVariant[] = formatNames.flatMap((format) => {
  const { variants }: FormatFixture = formatFixtures[format]
  return [{}, ...variants].map((templateArguments) => ({
    name: Object.keys(templateArguments).length === 0 ? format : `${format} ${JSON.stringify(templateArguments)}`,
    format,
    arguments: templateArguments,
  }))
})

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8')

/** The conversations of the fixtures by name, as text, so that numbers keep their spelling. */
export function fixtureConversations(): Map<string, string> {
  return new Map(['conversations.json', 'format-conversations.json'].flatMap((file) => [...membersOf(readJson(fixture(file)))]))
}

function membersOf(node: JsonNode): [string, string][] {
  return node.kind === 'object' ? Array.from(node.members, ([name, { text }]) => [name, text]) : []
}

/** Compiles the templates of a variant into a function that renders the JSON of a conversation; `null` if the template refuses it. */
export function variantRenderer({
  format,
  arguments: templateArguments,
}: FormatVariant): (conversation: string, prompt: boolean) => string | null {
  const { bosToken, eosToken, toolUse }: FormatFixture = formatFixtures[format]
  const tokens = { ...(bosToken !== null && { bos_token: bosToken }), eos_token: eosToken }
  const plain = compileTemplate(formatTemplate(format), tokens, templateArguments)
  const withTools = toolUse ? compileTemplate(formatTemplate(format, true), tokens, templateArguments) : plain
  return (conversation, addGenerationPrompt) => renderText({ plain, withTools }, conversation, addGenerationPrompt)
}

function renderText(
  templates: { readonly plain: ChatTemplate; readonly withTools: ChatTemplate },
  conversation: string,
  addGenerationPrompt: boolean,
): string | null {
  const fields = fromJson(readJson(conversation)) as Dictionary
  const messages = (fields.get('messages') as Value[]).map(toTransformersMessage)
  const tools = fields.get('tools') ?? null
  if (messages.length === 0) return null
  try {
    return (tools ? templates.withTools : templates.plain).render({ messages, tools, addGenerationPrompt, now: renderingClock })
  } catch {
    return null
  }
}

/**
 * Prepares a message as `apply_chat_template` of transformers 5.23 does: fields that are None are left out,
 * and reasoning has both its names.
 */
function toTransformersMessage(message: Value): Value {
  if (!(message instanceof Dictionary)) return message
  const fields = new Dictionary([...message].filter(([, value]) => value !== null))
  const reasoning = fields.get('reasoning_content') ?? fields.get('thinking')
  if (reasoning === undefined) return fields
  const both = new Dictionary([['thinking', reasoning], ...fields])
  both.set('reasoning_content', reasoning)
  return both
}

/** Stands for a rendering and its ids in a golden file. */
export function renderingDigest(text: string | null, ids: ArrayLike<number>): string {
  if (text === null) return 'refused'
  return createHash('sha256')
    .update(`${text}\0${Array.from(ids).join(',')}`)
    .digest('hex')
    .slice(0, 16)
}
