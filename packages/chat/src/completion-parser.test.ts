import type { FinishReason, ToolDefinition } from '@aworld-train/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chatMlTemplate } from './chat-ml-template.ts'
import { loadChatModel } from './load-chat-model.ts'
import { type ShapeName, writeShape } from './template-shapes.test-support.ts'
import type { ChatModel, CompletionDelta, ParsedCompletion } from './types.ts'
import { type ModelFiles, writeModel } from './write-model.test-support.ts'

const lookup: ToolDefinition = { name: 'lookup', parameters: {} }

async function shape(name: ShapeName): Promise<ChatModel> {
  await using folder = await writeShape(name)
  return await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds })
}

async function chatMl(files: Partial<ModelFiles> = {}): Promise<ChatModel> {
  const special = ['<|im_start|>', '<|im_end|>']
  await using folder = await writeModel({ template: chatMlTemplate, special, eosToken: '<|im_end|>', ...files })
  return await loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
}

interface Options {
  readonly unified?: FinishReason['unified']
  readonly tools?: readonly ToolDefinition[]
  readonly stop?: readonly string[]
  /** Sizes of the pieces of ids; one by one if absent. */
  readonly pieces?: readonly number[]
}

interface Parsed extends ParsedCompletion {
  readonly all: readonly CompletionDelta[]
  readonly stopped: boolean
}

function parse(model: ChatModel, sampled: string | Int32Array, options: Options = {}): Parsed {
  const { unified = 'stop', tools = [lookup], stop = [], pieces = [] } = options
  const ids = typeof sampled === 'string' ? model.encode(sampled) : sampled
  const prompt = model.createConversation().prepare({ messages: [{ role: 'user', content: 'q' }], tools: model.probe.syntax ? tools : [] })
  const parser = model.createCompletionParser({ tools, prompt, stop, mintToolCallId: (index) => `id${index}` })
  const all: CompletionDelta[] = []
  let at = 0
  for (let piece = 0; at < ids.length; piece += 1) {
    const size = pieces[piece % (pieces.length || 1)] ?? 1
    all.push(...parser.push(ids.subarray(at, at + size)))
    at += size
  }
  const finished = parser.finish({ unified })
  return { ...finished, all: [...all, ...finished.deltas], stopped: parser.stopped }
}

const call = (args: string) => `<tool_call>\n{"name": "lookup", "arguments": ${args}}\n</tool_call>`

describe('calls', () => {
  test('the model’s own argument text is delivered', async () => {
    const { message, finishReason, issues } = parse(await chatMl(), `${call('{"b":  1.0, "a": "ü"}')}<|im_end|>`)
    expect(message).toEqual({
      role: 'assistant',
      content: null,
      toolCalls: [{ id: 'id0', name: 'lookup', arguments: '{"b":  1.0, "a": "ü"}' }],
    })
    expect({ finishReason, issues }).toEqual({ finishReason: 'tool-calls', issues: [] })
  })

  test.each([
    ['parameters for arguments', '{"name": "f", "parameters": {"a": 1}}', '{"a": 1}'],
    ['arguments as a JSON string', '{"name": "f", "arguments": "{\\"a\\": 1}"}', '{"a": 1}'],
    ['a function wrapper', '{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}', '{"a": 1}'],
    ['no arguments', '{"name": "f"}', '{}'],
    ['arguments that are null', '{"name": "f", "arguments": null}', '{}'],
    ['arguments that are empty text', '{"name": "f", "arguments": ""}', '{}'],
  ])('taken as it is: %s', async (_, body, args) => {
    const { message, issues } = parse(await chatMl(), `<tool_call>${body}</tool_call><|im_end|>`)
    expect(message.toolCalls).toEqual([{ id: 'id0', name: 'f', arguments: args }])
    expect(issues).toEqual([])
  })

  test.each([
    ['single quotes', "{'name': 'f', 'arguments': {}}"],
    ['one brace too many', '{"name": "f", "arguments": {}}}'],
    ['a raw newline in a string', '{"name": "f", "arguments": {"a": "x\ny"}}'],
    ['two objects', '{"name": "f", "arguments": {}}{"name": "g", "arguments": {}}'],
    ['arguments that are a list', '{"name": "f", "arguments": [1]}'],
    ['a comma before a closing bracket', '{"name": "f", "arguments": {"a": 1,}}'],
    ['no name', '{"arguments": {}}'],
    ['an empty name', '{"name": "", "arguments": {}}'],
    ['NaN', '{"name": "f", "arguments": {"a": NaN}}'],
    ['nothing', ''],
  ])('not repaired, delivered as text and counted: %s', async (_, body) => {
    const text = `Look: <tool_call>${body}</tool_call>`
    const { message, issues, finishReason } = parse(await chatMl(), `${text}<|im_end|>`)
    expect(message).toEqual({ role: 'assistant', content: text })
    expect({ issues, finishReason }).toEqual({ issues: ['call-invalid'], finishReason: 'stop' })
  })

  test('a bad call does not swallow the good one behind it', async () => {
    const { message, issues } = parse(await chatMl(), `<tool_call>{bad}</tool_call>\n${call('{}')}<|im_end|>`)
    expect(message).toMatchObject({ content: '<tool_call>{bad}</tool_call>', toolCalls: [{ arguments: '{}' }] })
    expect(issues).toEqual(['call-invalid'])
  })

  test('an argument may hold the closing tag', async () => {
    const { message } = parse(await chatMl(), `${call('{"a": "x</tool_call>y"}')}<|im_end|>`)
    expect(message.toolCalls).toMatchObject([{ arguments: '{"a": "x</tool_call>y"}' }])
  })

  test('text before, between and behind calls is delivered without the white space of the syntax', async () => {
    const { message, all } = parse(await chatMl(), `First.\n${call('{}')}\n${call('{"a": 1}')}\n then<|im_end|>`)
    expect(message.content).toBe('First.then')
    expect(all.map((delta) => (delta.type === 'tool-call' ? delta.index : delta.text)).join('')).toBe('First.01then')
  })

  test('an unclosed call counts only where the model really stopped', async () => {
    const model = await chatMl()
    const open = '<tool_call>\n{"name": "lookup", "arguments": {}}'
    expect(parse(model, `${open}<|im_end|>`)).toMatchObject({ finishReason: 'tool-calls', issues: ['close-missing'] })
    for (const unified of ['length', 'aborted'] as const) {
      const { message, finishReason, issues } = parse(model, open, { unified })
      expect({ message, finishReason, issues }).toEqual({
        message: { role: 'assistant', content: open },
        finishReason: unified,
        issues: ['call-unclosed'],
      })
    }
  })

  test('after complete calls a cut stays a cut', async () => {
    expect(parse(await chatMl(), `${call('{}')} and`, { unified: 'length' })).toMatchObject({
      finishReason: 'length',
      message: { content: 'and' },
    })
  })

  test('without tools the tags are text', async () => {
    expect(parse(await chatMl(), `${call('{}')}<|im_end|>`, { tools: [] }).message).toEqual({ role: 'assistant', content: call('{}') })
  })

  test('a tool nobody offered is delivered: the client answers with an error', async () => {
    const { message } = parse(await chatMl(), '<tool_call>{"name": "nope", "arguments": {}}</tool_call><|im_end|>')
    expect(message.toolCalls).toMatchObject([{ name: 'nope' }])
  })

  test('where the template prints one call, the first alone is delivered', async () => {
    const { message, issues } = parse(await shape('header'), `${call('{}')}${call('{"a": 1}')}<|eot|>`)
    expect(message.toolCalls).toMatchObject([{ id: 'id0', arguments: '{}' }])
    expect(issues).toEqual(['parallel-call-dropped'])
  })

  test('tags that are special tokens count only as those tokens', async () => {
    const model = await chatMl({ special: ['<|im_start|>', '<|im_end|>', '<tool_call>', '</tool_call>'] })
    expect(parse(model, `${call('{"a": 1}')}<|im_end|>`).message.toolCalls).toMatchObject([{ arguments: '{"a": 1}' }])
    const spelled = Array.from('<tool_call>{"name": "f"}</tool_call>').flatMap((character) => [...model.encode(character)])
    const { message } = parse(model, Int32Array.from(spelled))
    expect(message).toEqual({ role: 'assistant', content: '<tool_call>{"name": "f"}</tool_call>' })
  })
})

describe('reasoning', () => {
  const thinking = '<think>\nlet me see\n</think>\n\n'

  test('is split off first, and its white space with it', async () => {
    const { message } = parse(await shape('think-dropping'), `${thinking}26<|im_end|>`)
    expect(message).toEqual({ role: 'assistant', content: '26', reasoning: 'let me see' })
  })

  test('may be opened by the prompt', async () => {
    const { message } = parse(await shape('think-open'), 'let me see\n</think>\n\n26<|im_end|>')
    expect(message).toEqual({ role: 'assistant', content: '26', reasoning: 'let me see' })
  })

  test('a call inside it is text', async () => {
    const { message, issues, finishReason } = parse(await shape('think-dropping'), `<think>${call('{}')}</think>ok<|im_end|>`)
    expect(message).toEqual({ role: 'assistant', content: 'ok', reasoning: call('{}') })
    expect({ issues, finishReason }).toEqual({ issues: ['call-in-reasoning'], finishReason: 'stop' })
  })

  test('cut inside it there is no content', async () => {
    const { message } = parse(await shape('think-dropping'), '<think>\nlet me', { unified: 'length' })
    expect(message).toEqual({ role: 'assistant', content: '', reasoning: 'let me' })
  })

  test('tags in a model that does not know them are text', async () => {
    expect(parse(await chatMl(), `${thinking}26<|im_end|>`).message.content).toBe(`${thinking}26`)
  })
})

describe('streaming', () => {
  test('nothing that may become a marker is shown early', async () => {
    const model = await chatMl()
    const prompt = model.createConversation().prepare({ messages: [{ role: 'user', content: 'q' }], tools: [lookup] })
    const parser = model.createCompletionParser({ tools: [lookup], prompt, mintToolCallId: () => 'x' })
    expect(parser.push(model.encode('a <tool_'))).toEqual([{ type: 'content', text: 'a' }])
    expect(parser.push(model.encode('box>'))).toEqual([{ type: 'content', text: ' <tool_box>' }])
  })

  test('incomplete UTF-8 waits; at the end it is shown as U+FFFD', async () => {
    const model = await chatMl()
    const ids = model.encode('🙂')
    expect(parse(model, ids, { pieces: [1] }).all).toEqual([{ type: 'content', text: '🙂' }])
    expect(parse(model, ids.subarray(0, 2), { unified: 'length' }).message.content).toBe('\uFFFD')
  })

  test('a stop string ends the text before it, wherever the tokens are cut', async () => {
    const model = await chatMl()
    const { message, stopped, finishReason } = parse(model, 'one two STOP three', { stop: ['STOP', 'never'] })
    expect({ content: message.content, stopped, finishReason }).toEqual({ content: 'one two ', stopped: true, finishReason: 'stop' })
    expect(parse(model, 'one STO', { stop: ['STOP'] })).toMatchObject({ message: { content: 'one STO' }, stopped: false })
  })

  test('white space around a plain answer is the model’s', async () => {
    expect(parse(await chatMl(), '  26 \n<|im_end|>').message.content).toBe('  26 \n')
  })

  test('an empty completion is an empty answer', async () => {
    expect(parse(await chatMl(), '<|im_end|>')).toMatchObject({
      message: { role: 'assistant', content: '' },
      finishReason: 'stop',
      all: [],
    })
  })

  const parts = fc.array(
    fc.oneof(
      fc.constantFrom(
        call('{"a": 1}'),
        call('{}'),
        '<tool_call>',
        '</tool_call>',
        '{"name": "f"}',
        '<think>',
        '</think>',
        '<|im_start|>',
        ' ',
        '\n',
        '<tool',
        '漢🙂',
      ),
      fc.string({ unit: 'grapheme', maxLength: 6 }),
    ),
    { maxLength: 8 },
  )

  test.each(['chat-ml', 'think-dropping'] as const)('how the ids arrive makes no difference: %s', async (name) => {
    const model = await shape(name)
    fc.assert(
      fc.property(
        parts,
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        (texts, pieces, stopped) => {
          const text = texts.join('')
          const unified = stopped ? 'stop' : 'length'
          const whole = parse(model, text, { pieces: [10_000], unified, stop: ['{}', 'zz'] })
          const cut = parse(model, text, { pieces, unified, stop: ['{}', 'zz'] })
          expect(cut.message).toEqual(whole.message)
          expect(cut.issues).toEqual(whole.issues)
          const content = cut.all.flatMap((delta) => (delta.type === 'content' ? delta.text : [])).join('')
          expect(content).toBe(cut.message.content ?? '')
          for (const { arguments: args } of cut.message.toolCalls ?? []) expect(typeof JSON.parse(args)).toBe('object')
        },
      ),
      { numRuns: 150 },
    )
  })

  test('any text comes back where there is nothing to parse', async () => {
    const model = await chatMl()
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('<')),
        fc.integer({ min: 1, max: 4 }),
        (text, size) => {
          expect(parse(model, text, { pieces: [size] }).message.content).toBe(text)
        },
      ),
      { numRuns: 150 },
    )
  })
})
