import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chatMlTemplate } from './chat-ml-template.ts'
import { checkTemplate } from './check-template.ts'
import { writeFormat } from './format-fixtures.test-support.ts'
import { loadChatModel } from './load-chat-model.ts'
import type { ChatModel } from './types.ts'
import { writeModel } from './write-model.test-support.ts'

const special = ['<|im_start|>', '<|im_end|>']
const chatMl = { template: chatMlTemplate, special, eosToken: '<|im_end|>', ends: ['<|im_end|>'] }

test('the committed file is the exported template', async () => {
  expect(await readFile(new URL('../fixtures/templates/chat-ml.jinja', import.meta.url), 'utf8')).toBe(chatMlTemplate)
})

test('a template may stand in tokenizer_config.json, with one for tools beside it', async () => {
  const named = [
    { name: 'default', template: chatMlTemplate },
    { name: 'tool_use', template: `TOOLS ${chatMlTemplate}` },
  ]
  await using folder = await writeModel({ ...chatMl, config: { chat_template: named } })
  await rm(join(folder.directory, 'chat_template.jinja'))
  const model = await loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  const prompt = (tools: { name: string; parameters: object }[]) =>
    model.decode(model.createConversation().prepare({ messages: [{ role: 'user', content: 'q' }], tools: tools as never }).promptTokenIds)
  expect(prompt([])).toMatch(/^<\|im_start\|>user/)
  expect(prompt([{ name: 'f', parameters: {} }])).toMatch(/^TOOLS<\|im_start\|>system/)
})

test('special tokens may be objects', async () => {
  await using folder = await writeModel({
    ...chatMl,
    template: `{{ bos_token }}${chatMlTemplate}`,
    config: { bos_token: { content: '<|im_start|>' } },
  })
  const model = await loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  const { promptTokenIds } = model.createConversation().prepare({ messages: [{ role: 'user', content: 'q' }], tools: [] })
  expect(model.decode(promptTokenIds)).toMatch(/^<\|im_start\|><\|im_start\|>user/)
})

test('the template of a processor is read, files beside it are for tools', async () => {
  await using folder = await writeModel({ ...chatMl, template: null })
  await writeFile(join(folder.directory, 'chat_template.json'), JSON.stringify({ chat_template: chatMlTemplate }))
  await mkdir(join(folder.directory, 'additional_chat_templates'))
  await writeFile(join(folder.directory, 'additional_chat_templates', 'tool_use.jinja'), `TOOLS ${chatMlTemplate}`)
  const model = await loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  const prompt = (tools: { name: string; parameters: object }[]) =>
    model.decode(model.createConversation().prepare({ messages: [{ role: 'user', content: 'q' }], tools: tools as never }).promptTokenIds)
  expect(prompt([])).toMatch(/^<\|im_start\|>user/)
  expect(prompt([{ name: 'f', parameters: {} }])).toMatch(/^TOOLS <\|im_start\|>system|^TOOLS<\|im_start\|>system/)
})

test('templates without a default are named', async () => {
  const named = [{ name: 'tool_use', template: chatMlTemplate }, { name: 'rag', template: 'x' }, null, { name: 'odd' }]
  await using folder = await writeModel({ ...chatMl, template: null, config: { chat_template: named } })
  const loading = loadChatModel({ directory: folder.directory, stopTokenIds: [] })
  await expect(loading).rejects.toThrow('has no template named "default" among its templates "tool_use", "rag"')
})

test('arguments of the template reach every rendering, the digest and the hash', async () => {
  await using folder = await writeFormat('qwen3')
  const load = (templateArguments?: Record<string, unknown>) =>
    loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds, templateArguments })
  const [plain, silent] = [await load(), await load({ enable_thinking: false })]
  const prompt = (model: ChatModel) =>
    model.decode(model.createConversation().prepare({ messages: [{ role: 'user', content: 'q' }], tools: [] }).promptTokenIds)
  expect(prompt(plain)).toMatch(/assistant\n$/)
  expect(prompt(silent)).toMatch(/assistant\n<think>\n\n<\/think>\n\n$/)
  expect(plain.templateHash).not.toBe(silent.templateHash)
  expect(plain.probe.digest).not.toBe(silent.probe.digest)
  expect((await load({})).templateHash).toBe(plain.templateHash)
})

const features = [
  { source: '{{ messages | groupby("role") }}', says: 'the filter groupby is not supported' },
  { source: '{{ messages | map("urlencode") | list }}', says: 'the filter urlencode is not supported' },
  { source: '{{ "x".casefold() }}', says: 'the method casefold is not supported' },
  { source: '{% set messages[0] = 1 %}', says: 'setting an item of a value is not supported' },
  { source: '{% include "other" %}', says: 'Unknown statement type: include' },
  { source: '{{ 1 is divisibleby(2) }}', says: 'cannot be read' },
] as const

test.each(features)('a feature that is missing is named, with the remedy: $source', async ({ source, says }) => {
  await using folder = await writeModel({ ...chatMl, template: source + chatMlTemplate })
  const loading = loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  await expect(loading).rejects.toMatchObject({ code: 'TEMPLATE_UNSUPPORTED', message: expect.stringContaining(says) })
  await expect(loading).rejects.toThrow('Use a chat engine')
})

test('an engine may stop a last answer with another token than the one that closes it in history', async () => {
  await using folder = await writeFormat('gpt-oss')
  const model = await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds })
  expect(model.probe).toMatchObject({ finalStop: '<|return|>', stops: { plain: '<|end|>', call: '<|call|>' } })
  const without = folder.stopTokenIds.filter((id) => id !== folder.idOf('<|return|>'))
  await expect(loadChatModel({ directory: folder.directory, stopTokenIds: without })).rejects.toThrow('add <|return|> to its stop tokens')
})

test('a closer that only the tokenizer knows is found, and has to be a stop of the engine', async () => {
  await using folder = await writeModel({ ...chatMl, special: ['<|endoftext|>', ...special], eosToken: '<|endoftext|>', ends: [] })
  const loading = loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|endoftext|>')] })
  await expect(loading).rejects.toThrow('closes a turn with <|im_end|>, where the engine does not stop')
})

test('encoding and decoding lose nothing, and special tokens can be left out', async () => {
  await using folder = await writeModel(chatMl)
  const model = await loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  const ids = model.encode('a 漢字 🙂<|im_end|>')
  expect(model.decode(ids)).toBe('a 漢字 🙂<|im_end|>')
  expect(model.decode([...ids], { skipSpecialTokens: true })).toBe('a 漢字 🙂')
  expect(model.decode([])).toBe('')
  ids.fill(0)
  expect(model.decode(model.encode('a 漢字 🙂<|im_end|>'))).toBe('a 漢字 🙂<|im_end|>')
})

test('a changed template has another digest and another hash', async () => {
  await using one = await writeModel(chatMl)
  await using two = await writeModel({ ...chatMl, template: chatMlTemplate.replace("'<|im_end|>\\n'", "'<|im_end|>\\n\\n'") })
  const [a, b, again] = await Promise.all(
    [one, two, one].map((folder) => loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })),
  )
  expect(a!.probe.digest).toBe(again!.probe.digest)
  expect(a!.probe.digest).not.toBe(b!.probe.digest)
  expect(a!.templateHash).not.toBe(b!.templateHash)
  expect(a!.tokenizerHash).toBe(b!.tokenizerHash)
})

const broken: readonly { readonly name: string; readonly file: string; readonly text: string | null; readonly says: string }[] = [
  { name: 'no tokenizer', file: 'tokenizer.json', text: null, says: 'has no tokenizer.json' },
  { name: 'no template', file: 'chat_template.jinja', text: null, says: 'has no chat_template.jinja' },
  { name: 'a tokenizer that is not JSON', file: 'tokenizer.json', text: '{', says: 'cannot be used' },
  { name: 'a configuration that is not JSON', file: 'tokenizer_config.json', text: 'x', says: 'tokenizer_config.json is not JSON' },
  {
    name: 'a configuration that is a list',
    file: 'generation_config.json',
    text: '[]',
    says: 'generation_config.json is not a JSON object',
  },
  { name: 'a template that is not Jinja', file: 'chat_template.jinja', text: '{% if %}', says: 'The chat template of' },
  {
    name: 'a template that always raises',
    file: 'chat_template.jinja',
    text: "{{ raise_exception('no chat here') }}",
    says: 'no chat here',
  },
  { name: 'a template without messages', file: 'chat_template.jinja', text: 'Hello', says: 'prints no user message' },
]

test.each(broken)('refused with its reason: $name', async ({ file, text, says }) => {
  await using folder = await writeModel(chatMl)
  const path = join(folder.directory, file)
  await (text === null ? rm(path) : writeFile(path, text))
  const loading = loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  await expect(loading).rejects.toMatchObject({ code: 'TEMPLATE_UNSUPPORTED', message: expect.stringContaining(says) })
  const { problems } = await checkTemplate(folder.directory)
  expect(problems.join()).toContain(says)
})

test('an engine that does not stop where the template closes a turn is refused', async () => {
  await using folder = await writeModel({ ...chatMl, special: [...special, '<|endoftext|>'] })
  const loading = loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|endoftext|>')] })
  await expect(loading).rejects.toThrow('closes a turn with <|im_end|>, where the engine does not stop')
})

test('a tokenizer that reads its stop token otherwise in front of some text is refused', async () => {
  await using folder = await writeModel({ ...chatMl, added: ['<|im_end|>\n'] })
  const loading = loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  await expect(loading).rejects.toMatchObject({
    code: 'TEMPLATE_UNSUPPORTED',
    message: expect.stringContaining(`does not read the stop token <|im_end|> back as id ${folder.idOf('<|im_end|>')}`),
  })
})

test('a tokenizer that loses something of a text is refused', async () => {
  await using folder = await writeModel(chatMl)
  const file = join(folder.directory, 'tokenizer.json')
  await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), normalizer: { type: 'Lowercase' } }))
  const loading = loadChatModel({ directory: folder.directory, stopTokenIds: [folder.idOf('<|im_end|>')] })
  await expect(loading).rejects.toMatchObject({
    code: 'TEMPLATE_UNSUPPORTED',
    message: expect.stringContaining('turns "Hello, world" into "hello, world"; use one that loses nothing'),
  })
})
