import { readFileSync } from 'node:fs'
import { type ModelFiles, type ModelOnDisk, writeModel } from './write-model.test-support.ts'

/** A published format: our own template that writes it, and its tokens. */
export interface FormatFixture {
  /** Special tokens. The first is the end of text. */
  readonly special: readonly string[]
  /** Added tokens that are ordinary text to a decoder. */
  readonly added: readonly string[]
  readonly bosToken: string | null
  readonly eosToken: string
  /** Tokens at which the engine stops. */
  readonly stops: readonly string[]
  readonly tokenizer: 'byte-level' | 'metaspace'
  /** Whether there is a second template for requests with tools. */
  readonly toolUse: boolean
  /** Arguments of the template that change its text, each a variant to test. */
  readonly variants: readonly Readonly<Record<string, unknown>>[]
}

const format = (fields: Pick<FormatFixture, 'special' | 'eosToken' | 'stops'> & Partial<FormatFixture>): FormatFixture => ({
  added: [],
  bosToken: null,
  tokenizer: 'byte-level',
  toolUse: false,
  variants: [],
  ...fields,
})

const qwenSpecial = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']
const qwenStops = { special: qwenSpecial, eosToken: '<|im_end|>', stops: ['<|im_end|>', '<|endoftext|>'] }
const callTags = ['<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>']
const thinkTags = ['<think>', '</think>']
const deepSeekCalls = ['calls▁begin', 'calls▁end', 'call▁begin', 'call▁end', 'outputs▁begin', 'outputs▁end', 'output▁begin', 'output▁end']
const deepSeek = {
  special: ['<｜end▁of▁sentence｜>', '<｜begin▁of▁sentence｜>'],
  added: ['<｜User｜>', '<｜Assistant｜>', '<｜tool▁sep｜>', ...deepSeekCalls.map((part) => `<｜tool▁${part}｜>`), ...thinkTags],
  bosToken: '<｜begin▁of▁sentence｜>',
  eosToken: '<｜end▁of▁sentence｜>',
  stops: ['<｜end▁of▁sentence｜>'],
}
const mistralCalls = ['[TOOL_CALLS]', '[AVAILABLE_TOOLS]', '[/AVAILABLE_TOOLS]', '[TOOL_RESULTS]', '[/TOOL_RESULTS]']
const mistral = {
  special: ['</s>', '<s>', '[INST]', '[/INST]', ...mistralCalls],
  bosToken: '<s>',
  eosToken: '</s>',
  stops: ['</s>'],
}
const mistralSystem = [...mistral.special, '[SYSTEM_PROMPT]', '[/SYSTEM_PROMPT]', '[TOOL_CONTENT]', '[CALL_ID]', '[ARGS]']
const llamaHeaders = ['<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>', '<|eom_id|>', '<|python_tag|>']
const glmRoles = ['<|system|>', '<|user|>', '<|assistant|>', '<|observation|>']
const gemmaCalls = ['<|tool_call>', '<tool_call|>', '<|tool_response>', '<tool_response|>', '<|"|>']
const kimiRoles = ['<|im_system|>', '<|im_user|>', '<|im_assistant|>', '<|im_middle|>']
const kimiCalls = ['calls_section_begin', 'calls_section_end', 'call_begin', 'call_argument_begin', 'call_end']

/** Formats of published models. Their templates are in fixtures/formats/NAME.jinja. */
export const formatFixtures = {
  'qwen2.5': format({ ...qwenStops, added: callTags }),
  qwen3: format({ ...qwenStops, added: [...callTags, ...thinkTags], variants: [{ enable_thinking: false }] }),
  'qwen3-coder': format({ ...qwenStops, added: callTags }),
  'llama-3': format({
    special: ['<|end_of_text|>', '<|begin_of_text|>', ...llamaHeaders],
    bosToken: '<|begin_of_text|>',
    eosToken: '<|eot_id|>',
    stops: ['<|eot_id|>', '<|eom_id|>', '<|end_of_text|>'],
    variants: [{ date_string: '1 Apr 2025' }, { tools_in_user_message: false }],
  }),
  hermes: format({ ...qwenStops, added: ['<tool_call>', '</tool_call>'], bosToken: '<|endoftext|>', toolUse: true }),
  'mistral-v3': format({ ...mistral, tokenizer: 'metaspace' }),
  'mistral-v7': format({ ...mistral, special: mistralSystem }),
  'mistral-v11': format({ ...mistral, special: mistralSystem }),
  'mistral-v13': format({ ...mistral, special: [...mistralSystem, '[THINK]', '[/THINK]'] }),
  'deepseek-r1': format(deepSeek),
  'deepseek-v3.1': format({ ...deepSeek, variants: [{ thinking: true }] }),
  'gemma-3': format({
    special: ['<eos>', '<bos>', '<start_of_turn>', '<end_of_turn>'],
    bosToken: '<bos>',
    eosToken: '<eos>',
    stops: ['<end_of_turn>', '<eos>'],
    tokenizer: 'metaspace',
  }),
  'gemma-4': format({
    special: ['<eos>', '<bos>', '<|turn>', '<turn|>', '<|think|>', '<|channel>', '<channel|>', '<|tool>', '<tool|>', ...gemmaCalls],
    bosToken: '<bos>',
    eosToken: '<eos>',
    stops: ['<turn|>', '<|tool_response>', '<eos>'],
    variants: [{ enable_thinking: true }, { enable_thinking: false }],
  }),
  'gpt-oss': format({
    special: ['<|endoftext|>', '<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>', '<|return|>', '<|call|>'],
    eosToken: '<|return|>',
    stops: ['<|return|>', '<|call|>', '<|endoftext|>'],
    variants: [{ reasoning_effort: 'high', model_identity: 'You are a test.' }],
  }),
  'glm-4.5': format({
    special: ['<|endoftext|>', '[gMASK]', '<sop>', ...glmRoles],
    added: [...callTags, ...thinkTags, '<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>', '/nothink'],
    eosToken: '<|endoftext|>',
    stops: ['<|endoftext|>', '<|user|>', '<|observation|>'],
    variants: [{ enable_thinking: false }],
  }),
  'kimi-k2': format({
    special: ['[EOS]', '[BOS]', ...kimiRoles, '<|im_end|>', ...kimiCalls.map((part) => `<|tool_${part}|>`)],
    added: thinkTags,
    bosToken: '[BOS]',
    eosToken: '<|im_end|>',
    stops: ['<|im_end|>', '[EOS]'],
  }),
} as const satisfies Record<string, FormatFixture>

export type FormatName = keyof typeof formatFixtures
export const formatNames = Object.keys(formatFixtures) as FormatName[]

/** Source of a format's template; of the one for tools if there are two and `toolUse` is set. */
export function formatTemplate(name: FormatName, toolUse = false): string {
  return readFileSync(new URL(`../fixtures/formats/${name}${toolUse ? '.tool_use' : ''}.jinja`, import.meta.url), 'utf8')
}

export interface FormatOnDisk extends ModelOnDisk {
  readonly stopTokenIds: readonly number[]
}

/** Writes a model folder in one format, with a tokenizer of ours. */
export async function writeFormat(name: FormatName, how: Pick<ModelFiles, 'tokenizer' | 'rstrip'> = {}): Promise<FormatOnDisk> {
  const { special, added, bosToken, eosToken, stops, tokenizer, toolUse }: FormatFixture = formatFixtures[name]
  const template = formatTemplate(name)
  const named = toolUse
    ? [
        { name: 'default', template },
        { name: 'tool_use', template: formatTemplate(name, true) },
      ]
    : null
  const config = { ...(bosToken !== null && { bos_token: bosToken }), ...(named && { chat_template: named }) }
  const model = await writeModel({ template: named ? null : template, special, added, ends: stops, eosToken, tokenizer, config, ...how })
  return { ...model, stopTokenIds: stops.map((text) => model.idOf(text)) }
}
