import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { TrainError } from '@aworld-train/core'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FormatOnDisk, writeFormat } from '../../packages/chat/src/format-fixtures.test-support.ts'
import { formatVariants, renderingClock } from '../../packages/chat/src/format-renderings.test-support.ts'
import { loadChatModel } from '../../packages/chat/src/load-chat-model.ts'
import type { ChatModel } from '../../packages/chat/src/types.ts'
import type { ModelCall } from '../../packages/gateway/src/call.ts'
import { dialects } from '../../packages/gateway/src/dialects/index.ts'
import { createResponseMemory } from '../../packages/gateway/src/dialects/responses/memory.ts'
import { decode } from '../../packages/gateway/src/stages/decode.ts'
import { pythonEnvironment } from '../support/python-environment.ts'
import { conversations } from './rendering/arbitrary-conversation.ts'
import { plainRequest, wireForms } from './rendering/wire-forms.ts'

interface Rendering {
  readonly text?: string
  readonly ids?: readonly number[]
  readonly error?: string
}

interface Oracle extends AsyncDisposable {
  /** Renderings of a request by the models at some places. */
  ask(request: string, places: readonly number[]): Promise<readonly Rendering[]>
}

interface Model {
  readonly name: string
  readonly chat: ChatModel
}

const here = (file: string) => fileURLToPath(new URL(`rendering/${file}`, import.meta.url))
const requests = 500
/** A conversation is rendered by one of so many parts of the models. */
const parts = 3
let directory: string
let oracle: Oracle
let models: Model[]

/** The process that renders with transformers, one line for one. */
function startOracle(python: string, file: string): Oracle {
  const child = spawn(python, [here('line_oracle.py'), file], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async ask(request, places) {
      // A line break in JSON stands between its words.
      child.stdin.write(`{"models":[${places}],"request":${request.replaceAll('\n', ' ')}}\n`)
      const { value, done } = await lines.next()
      if (done) throw new Error('The oracle ended; see what it wrote above.')
      return JSON.parse(value) as readonly Rendering[]
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve))
    },
  }
}

beforeAll(async () => {
  const python = await pythonEnvironment({ name: 'rendering', requirements: here('requirements.txt') })
  directory = await mkdtemp(join(tmpdir(), 'dialects-'))
  const folders: FormatOnDisk[] = []
  models = []
  const entries: object[] = []
  for (const { name, format, arguments: templateArguments } of formatVariants) {
    const folder = await writeFormat(format)
    folders.push(folder)
    const chat = await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds, templateArguments })
    models.push({ name, chat })
    entries.push({ directory: folder.directory, arguments: templateArguments, form: chat.probe })
  }
  const file = join(directory, 'models.json')
  await writeFile(file, JSON.stringify(entries))
  oracle = startOracle(python, file)
  // The oracle has read every folder when it answers.
  await oracle.ask('{}', [])
  for (const folder of folders) await folder[Symbol.asyncDispose]()
})

afterAll(async () => {
  await oracle?.[Symbol.asyncDispose]()
  if (directory !== undefined) await rm(directory, { recursive: true, force: true })
})

/** The prompt of a call; the refusal where there is none. */
function prompt(chat: ChatModel, { messages, tools, toolsJson }: ModelCall): Int32Array | TrainError {
  try {
    return chat.createConversation({ now: renderingClock }).prepare({ messages, tools, toolsJson }).promptTokenIds
  } catch (error) {
    if (error instanceof TrainError) return error
    throw error
  }
}

/** Says in a line where two prompts differ; both refusing is equal. */
function difference({ name, chat }: Model, ours: Int32Array | TrainError, theirs: Rendering): string[] {
  if (ours instanceof TrainError) {
    // Tools are refused where the template cannot write a call.
    return theirs.ids === undefined || ours.code === 'TEMPLATE_UNSUPPORTED' ? [] : [`${name}: refused here: ${ours.message}`]
  }
  if (theirs.ids === undefined) return [`${name}: refused there: ${theirs.error}`]
  if (ours.length === theirs.ids.length && theirs.ids.every((id, index) => ours[index] === id)) return []
  const [text, expected] = [chat.decode(ours), theirs.text ?? '']
  let at = 0
  while (at < text.length && text[at] === expected[at]) at += 1
  const part = (whole: string) => JSON.stringify(whole.slice(Math.max(0, at - 30), at + 30))
  return [`${name}: at ${at} ${part(text)} for ${part(expected)}`]
}

test.each([...dialects.values()].map((dialect) => [dialect.name, dialect] as const))(
  `${requests} conversations in %s have the prompts that transformers gives`,
  async (name, dialect) => {
    const { write, arriving } = wireForms[name as keyof typeof wireForms]
    let rendered = 0
    const property = fc.asyncProperty(conversations, fc.nat(parts - 1), async (conversation, part) => {
      const places = models.flatMap((_, index) => (index % parts === part ? [index] : []))
      const answers = oracle.ask(plainRequest(arriving(conversation)), places)
      const call = decode(dialect, Buffer.from(write(conversation)), createResponseMemory())
      const ours = places.map((at) => prompt(models[at]!.chat, call))
      const theirs = await answers
      rendered += ours.filter((each) => !(each instanceof TrainError)).length
      expect(places.flatMap((at, index) => difference(models[at]!, ours[index]!, theirs[index]!))).toEqual([])
    })
    await fc.assert(property, { numRuns: requests })
    expect(rendered).toBeGreaterThan(requests * 5)
  },
)
