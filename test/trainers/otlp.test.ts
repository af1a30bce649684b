// @module-tag quick
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, it, onTestFinished } from 'vitest'
import { pythonEnvironment } from '../support/python-environment.ts'
import { makeTinyModel } from '../support/tiny-model.ts'
import { expectTree, type ReceivedSpan, trainTraced } from './otlp/traced-run.ts'

const here = (file: string) => fileURLToPath(new URL(`otlp/${file}`, import.meta.url))
let python: string
let folder: string
let model: string

beforeAll(async () => {
  python = await pythonEnvironment({ name: 'otlp', requirements: here('requirements.txt') })
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-otlp-'))
  model = await makeTinyModel(join(folder, 'model'))
}, 300_000)

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

it('hands the tree of every rollout to a receiver of the protocol, with the numbers of the run', async () => {
  const receiver = spawn(python, [here('receive_spans.py')], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void receiver.kill())
  const spans: ReceivedSpan[] = []
  const lines = createInterface(receiver.stdout)
  const received = once(lines, 'close')
  const port = await new Promise<number>((resolve) => {
    lines.on('line', (line) => (/^\d+$/.test(line) ? resolve(Number(line)) : spans.push(JSON.parse(line))))
  })
  const traced = await trainTraced(folder, model, `http://127.0.0.1:${port}`)
  receiver.kill()
  await received
  expectTree(spans, traced)
})
