import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkTemplate } from '@aworld-train/chat'
import { expect, test } from 'vitest'
import { type FormatName, writeFormat } from '../../../chat/src/format-fixtures.test-support.ts'
import { templateChecks } from './template-checks.ts'

async function linesOf(format: FormatName): Promise<string> {
  await using folder = await writeFormat(format)
  const checks = templateChecks(await checkTemplate(folder.directory))
  return checks.map(({ name, ok, message }) => `${ok ? '' : 'PROBLEM '}${name}: ${message.replace(/digest \w+/, 'digest …')}`).join('\n')
}

test('a person reads what a template wants, prints and loses', async () => {
  expect(await linesOf('mistral-v3')).toMatchInlineSnapshot(`
    "template: renders, and its text survives the tokenizer; digest …
    turn ends: an answer ends with </s>
    roles: system is known; developer is handed over as system
    tool calls: calls are read as mistral-list; arguments are handed over as an object; ids are in the prompt (alphanumeric-9)
    reasoning: not part of the history
    lost: text beside a call, reasoning
    history: template: in 3 of 7 situations a request begins a sample of its own
      answer with a system prompt, then user: earlier text changes
      text and call, then result: its text is dropped
      answer after a loop, then user: earlier text changes
    history: loop: in 2 of 7 situations a request begins a sample of its own
      answer with a system prompt, then user: earlier text changes
      answer after a loop, then user: earlier text changes
    history: as-sampled: in all 7 situations that were tried a request continues the turn before"
  `)
})

test('history is measured for every setting', async () => {
  expect(await linesOf('gpt-oss')).toMatchInlineSnapshot(`
    "template: renders, and its text survives the tokenizer; digest …
    turn ends: an answer ends with <|end|> (<|return|> where it is the last message), a call with <|call|>
    roles: system is known; developer is known
    tool calls: calls are read as harmony; arguments are handed over as an object; of parallel calls the first is printed
    reasoning: handed over as thinking
    lost: every call of a turn but the first
    history: template: in 6 of 11 situations a request begins a sample of its own
      answer, then user: it is closed with another token
      answer with a system prompt, then user: it is closed with another token
      two calls, then results: arguments are dropped, it has no closing token
      answer after a loop, then user: it is closed with another token
      reasoning and answer, then user: its reasoning is dropped, it is closed with another token
      reasoning and answer after a loop, then user: its reasoning is dropped, earlier text changes, it is closed with another token
    history: loop: in 6 of 11 situations a request begins a sample of its own
      answer, then user: it is closed with another token
      answer with a system prompt, then user: it is closed with another token
      two calls, then results: arguments are dropped, it has no closing token
      answer after a loop, then user: it is closed with another token
      reasoning and answer, then user: its reasoning is dropped, it is closed with another token
      reasoning and answer after a loop, then user: its reasoning is dropped, earlier text changes, it is closed with another token
    history: as-sampled: in 1 of 11 situations a request begins a sample of its own
      two calls, then results: arguments are dropped, it has no closing token"
  `)
})

test('a template that refuses calls says why', async () => {
  expect(await linesOf('gemma-3')).toContain(
    'tool calls: the template refuses calls (Conversation roles must alternate user/assistant/user/assistant/...): requests with tools are refused',
  )
})

test('a folder that cannot be used says why and what to do', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'template-checks-'))
  try {
    expect(templateChecks(await checkTemplate(directory))).toEqual([
      { name: 'template', ok: false, message: `The model folder ${directory} has no tokenizer.json; add it from the model's repository.` },
    ])
  } finally {
    await rm(directory, { recursive: true })
  }
})
