/**
 * Replaces `python -m verl.trainer.main_ppo` in tests. This process reads verl's overrides, connects to the channel, submits rows, samples
 * from a script, and writes the metrics, ledger and checkpoints that verl and the bridge would write. Its first argument is a file that
 * names its faults.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadChatModel } from '@aworld-train/chat'
import type { ChannelPartition, Message } from '@aworld-train/core'
import { loadDataset } from '@aworld-train/training'
import { connectTrainerClient } from '../../../rollout/src/testing/trainer-client.ts'

interface Faults {
  /** Kills this process in the middle of that step, once. */
  readonly killInStep?: number
  /** Hangs before the first step. */
  readonly hang?: boolean
  /** From the update of that step on it samples the wrong word again. */
  readonly forgetInStep?: number
}

const [faultsFile = '', ...argv] = process.argv.slice(2)
const faults: Faults = existsSync(faultsFile) ? JSON.parse(readFileSync(faultsFile, 'utf8')) : {}
const overrides = new Map(argv.map((each) => [each.slice(0, each.indexOf('=')).replace(/^\++/, ''), each.slice(each.indexOf('=') + 1)]))
const text = (key: string) => (overrides.get(key) ?? '').replace(/^(['"])(.*)\1$/, '$2')
const number = (key: string, missing: number) => (overrides.has(key) ? Number(text(key)) : missing)
const env = (name: string) => process.env[name] as string

const steps = number('trainer.total_training_steps', 1)
const prompts = number('data.train_batch_size', 1)
const samples = number('actor_rollout_ref.rollout.n', 1)
const testEvery = number('trainer.test_freq', -1)
const saveEvery = number('trainer.save_freq', -1)
const checkpoints = text('trainer.default_local_dir')
const latest = join(checkpoints, 'latest_checkpointed_iteration.txt')
const ledger = join(env('AWORLD_TRAIN_RUN_PATH'), 'ledger', env('AWORLD_TRAIN_INCARNATION'))

console.log("ray init kwargs: {'num_cpus': 16}")
const train = (await loadDataset(text('data.train_files'))).tasks
const test = (await loadDataset(text('data.val_files'))).tasks
console.log('(TaskRunnerV1 pid=1) train and validate dataloader initialized')

const chat = await loadChatModel({ directory: text('actor_rollout_ref.model.path'), stopTokenIds: [257] })
const messages: Message[] = [{ role: 'user', content: 'Hello.' }]
const renderedIds = chat.createConversation().prepare({ messages, tools: [] }).promptTokenIds.slice()
let version = 0
let words = 'no'
mkdirSync(ledger, { recursive: true })
const client = await connectTrainerClient({
  url: env('AWORLD_TRAIN_CHANNEL')
    .replace(/^ws/, 'http')
    .replace(/\/v1\/channel$/, ''),
  token: readFileSync(env('AWORLD_TRAIN_CHANNEL_TOKEN_FILE'), 'utf8'),
  renderedIds,
  hello: {
    run: env('AWORLD_TRAIN_RUN'),
    incarnation: env('AWORLD_TRAIN_INCARNATION'),
    limits: {
      maxPromptTokens: number('data.max_prompt_length', 512),
      maxResponseTokens: number('data.max_response_length', 512),
      contextLength: null,
    },
    check: { messages: messages.map(({ role, content }) => ({ role, content })), tools: null, templateArguments: {} },
  },
  sample({ key, id }) {
    const ids = [...Buffer.from(words), 257]
    appendFileSync(join(ledger, 'sampled-1.jsonl'), `${JSON.stringify({ key, id: String(id), version, tokens: ids.length })}\n`)
    return { ids, minVersion: version }
  },
})
if (faults.hang) await new Promise(() => setInterval(() => {}, 1_000))

function log(step: number, data: Record<string, number>): void {
  appendFileSync(env('VERL_FILE_LOGGER_PATH'), `${JSON.stringify({ step, data })}\n`)
}

function submit(partition: ChannelPartition, step: number, task: (typeof train)[number], uid: string, sample: number) {
  const row = { prompt: [{ role: 'user', content: String(task.input) }], columns: { id: task.id } }
  return client.submit({ partition, step, uid, sample, row })
}

async function validate(step: number): Promise<Record<string, number>> {
  const results = await Promise.all(test.map((task, index) => submit('val', step, task, `val-${step}-${index}`, 0)))
  const mean = results.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / results.length
  return { 'val-core/test/acc/mean@1': mean }
}

writeFileSync(env('VERL_FILE_LOGGER_PATH'), '')
const first = existsSync(latest) ? Number(readFileSync(latest, 'utf8')) : 0
version = first
if (first > 0) words = 'yes'
if (testEvery > 0 && text('trainer.val_before_train') !== 'false') log(first, await validate(first))
for (let step = first + 1; step <= steps; step++) {
  const chosen = Array.from({ length: prompts }, (_, index) => train[((step - 1) * prompts + index) % train.length]!)
  const results = await Promise.all(
    chosen.flatMap((task, index) =>
      Array.from({ length: samples }, (_, sample) => submit('train', step, task, `${step}-${index}`, sample)),
    ),
  )
  const keys = results.map(({ key, tokens }) => ({
    key,
    rows: tokens.length,
    maskTokens: tokens.reduce((sum, { mask }) => sum + mask.reduce((count, bit) => count + bit, 0), 0),
  }))
  if (faults.killInStep === step) {
    writeFileSync(faultsFile, '{}')
    process.kill(process.pid, 'SIGKILL')
  }
  appendFileSync(join(ledger, 'trained-1.jsonl'), `${JSON.stringify({ step, keys, rowsPadded: 0, maxLogprobDifference: 1e-7 })}\n`)
  version = step
  words = step >= (faults.forgetInStep ?? Number.POSITIVE_INFINITY) ? 'no' : 'yes'
  const timing: Record<string, number> = {
    'timing_s/step': 0.2,
    'timing_s/gen': 0.1,
    'timing_s/update_actor': 0.05,
    'timing_s/update_weights': 0.01,
  }
  if (saveEvery > 0 && (step % saveEvery === 0 || step === steps)) {
    mkdirSync(join(checkpoints, `global_step_${step}`, 'actor'), { recursive: true })
    writeFileSync(latest, String(step))
    timing['timing_s/save_checkpoint'] = 0.01
  }
  const validation = testEvery > 0 && (step % testEvery === 0 || step === steps) ? await validate(step) : {}
  const mean = results.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / results.length
  log(step, { 'critic/score/mean': mean, 'training/global_step': step, ...timing, ...validation })
}
await client.close()
