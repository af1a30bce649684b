import { TrainError, toTrainError } from '@aworld-train/core'
import { createCompletionParser } from './completion-parser.ts'
import { createConversation } from './continuity/conversation.ts'
import type { BranchMeasurement } from './continuity/expected-branches.ts'
import { historyNotes } from './continuity/history-notes.ts'
import type { OpenedModel } from './opened-model.ts'
import { prepareAsync } from './prepare-async.ts'
import { probeTemplate } from './probe/probe-template.ts'
import { selfTest } from './probe/self-test.ts'
import { reasoningTagsOf } from './reasoning-tags.ts'
import { createChatRenderer, type ModelTemplates } from './render/chat-renderer.ts'
import { compileTemplate, type TemplateArguments } from './render/chat-template.ts'
import { toolCallSyntaxes } from './syntax/table.ts'
import { createToCompletion } from './to-completion.ts'
import { createTokenizer, type TextTokenizer } from './tokenizer.ts'
import { readTokenizerFiles, type TokenizerFiles } from './tokenizer-files.ts'
import type { ChatModel, Conversation, ConversationOptions, HistoryMode, LoadChatModelOptions } from './types.ts'

/**
 * Loads tokenizer and template of a Hugging Face folder, probed and tested. Throws TEMPLATE_UNSUPPORTED if it
 * cannot be rendered faithfully.
 */
export async function loadChatModel({
  directory,
  stopTokenIds,
  history = 'loop',
  now = probeClock(),
  templateArguments = {},
}: LoadChatModelOptions): Promise<ChatModel> {
  const parts = openModel(await readTokenizerFiles(directory), { stopTokenIds, now, templateArguments })
  const problems = selfTest(parts)
  if (problems.length > 0) throw new TrainError('TEMPLATE_UNSUPPORTED', problems.join(' '), { details: { directory } })
  return assemble(parts, history)
}

/** A fixed day, so that the digest of a template that prints the date stays the same. */
export const probeClock = (): Date => new Date(2000, 0, 1)

export interface OpenOptions {
  /** Ids at which the engine stops. Default: those that the folder names or, if it names none, all that end a turn. */
  readonly stopTokenIds?: readonly number[] | undefined
  readonly now: Date
  readonly templateArguments?: TemplateArguments | undefined
}

export function openModel(folder: TokenizerFiles, { stopTokenIds, now, templateArguments }: OpenOptions): OpenedModel {
  const { directory } = folder
  const compile = (source: string) => compileTemplate(source, folder.specialTokens, templateArguments)
  let tokenizer: TextTokenizer
  let templates: ModelTemplates
  try {
    tokenizer = createTokenizer(folder.tokenizerText, folder.tokenizerConfig)
  } catch (error) {
    throw unsupported(`The tokenizer.json of ${directory} cannot be used`, error)
  }
  try {
    templates = {
      default: compile(folder.template),
      toolUse: folder.toolUseTemplate === null ? null : compile(folder.toolUseTemplate),
    }
  } catch (error) {
    throw unsupported(`The chat template of ${directory} cannot be read`, error)
  }
  const endOfText = folder.specialTokens['eos_token']
  const endId = endOfText === undefined ? null : tokenizer.tokenId(endOfText)
  const ids = new Set([...(stopTokenIds ?? []), ...folder.endIds, ...(endId === null ? [] : [endId])])
  const textsOf = (some: Iterable<number>) => new Map([...some].map((id) => [id, tokenizer.tokenText(id)] as const).filter(hasText))
  const engineStops = textsOf(ids)
  const probe = probeTemplate({ templates, stops: engineStops, specials: textsOf(tokenizer.specialIds), now })
  const closerId = probe.stops.plain === null ? null : tokenizer.tokenId(probe.stops.plain)
  const stops = closerId === null ? engineStops : textsOf([...ids, closerId])
  const reasoning = reasoningTagsOf(templates.default.source + (templates.toolUse?.source ?? ''))
  const engineStopIds = new Set(stopTokenIds ?? (folder.endIds.length > 0 ? folder.endIds : stops.keys()))
  return { directory, tokenizer, templates, probe, reasoning, stops, engineStopIds }
}

/** The parts that measuring branches needs. */
export function branchMeasurement(model: OpenedModel): BranchMeasurement {
  const { tokenizer, probe, reasoning } = model
  const createConversation = (history: HistoryMode) => conversations(model, history)({ now: new Date(0) })
  return { tokenizer, probe, reasons: reasoning !== null || probe.reasoningField !== 'none', createConversation }
}

function conversations(
  { tokenizer, templates, probe, reasoning, stops }: OpenedModel,
  history: HistoryMode,
): (options: ConversationOptions) => Conversation {
  const renderer = createChatRenderer(templates, { ...probe, reasoningTags: reasoning })
  const syntax = toolCallSyntaxes.find(({ name }) => name === probe.syntax) ?? null
  const markup = [...stops.values(), ...(reasoning ? [reasoning.open, reasoning.close] : [])]
  return ({ now = new Date(), maxPromptBytes = Number.POSITIVE_INFINITY, ignore = [] }) =>
    createConversation({ tokenizer, stops, probe, markup, renderer, reasoning, syntax, history, now, maxPromptBytes, ignore })
}

/** Assembles the model from opened parts. */
export function assemble(model: OpenedModel, history: HistoryMode): ChatModel {
  const { tokenizer, templates, probe, reasoning, engineStopIds } = model
  const syntax = toolCallSyntaxes.find(({ name }) => name === probe.syntax) ?? null
  const open = conversations(model, history)
  return {
    tokenizerHash: tokenizer.hash,
    templateHash: templates.toolUse ? `${templates.default.hash}+${templates.toolUse.hash}` : templates.default.hash,
    probe,
    historyNotes: historyNotes(branchMeasurement(model), history),
    encode: (text) => tokenizer.encode(text).slice(),
    decode: (ids, { skipSpecialTokens = false } = {}) => tokenizer.decode(ids, skipSpecialTokens),
    createConversation: (options = {}) => open(options),
    prepareAsync: (conversation, request, options) => prepareAsync(() => conversation.prepare(request), { ...options, tokenizer }),
    createCompletionParser: ({ tools, prompt, stop = [], forced = prompt.forced, mintToolCallId }) =>
      createCompletionParser({
        tokenizer,
        stopTokenIds: engineStopIds,
        syntax,
        reasoning,
        reasoningOpen: prompt.reasoningOpen,
        promptTokenIds: prompt.promptTokenIds,
        parallelCalls: probe.parallelCalls === 'all',
        tools,
        stop,
        forced,
        mintToolCallId,
        idForm: probe.idForm,
      }),
    toCompletion: createToCompletion(model),
  }
}

function hasText(entry: readonly [number, string | null]): entry is readonly [number, string] {
  return entry[1] !== null && entry[1] !== ''
}

function unsupported(what: string, error: unknown): TrainError {
  const { message } = toTrainError(error, 'TEMPLATE_UNSUPPORTED')
  return new TrainError('TEMPLATE_UNSUPPORTED', `${what}: ${message}. Use a chat engine, which renders on its own side.`, { cause: error })
}
