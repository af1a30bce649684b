import type { ChannelArrays, ServiceMessage, TrainerClientMessage } from '../index.ts'

/** A message of the channel, with its arrays. */
export interface GoldenMessage {
  readonly from: 'client' | 'service'
  readonly message: TrainerClientMessage | ServiceMessage
  readonly arrays: ChannelArrays
}

const key = 'periodic%20table/9f0c/train/3/g-1/0'
const failure = { code: 'POLICY_FAILED', message: 'Der Motor schweigt: é, 金, \u{1F600}.', retryable: false }
const bytes = (text: string) => new TextEncoder().encode(text)

const messages: Readonly<Record<string, Omit<GoldenMessage, 'from'>>> = {
  hello: {
    message: {
      type: 'hello',
      protocol: 2,
      run: 'periodic table',
      incarnation: '9f0c',
      worker: 'worker-0',
      framework: { name: 'verl', version: '0.9.1' },
      model: { name: 'tiny', vocabularySize: 259, stopTokenIds: [257] },
      tokenizerHash: 'a1',
      templateHash: 'b2',
      limits: { maxPromptTokens: 512, maxResponseTokens: 256, contextLength: null },
      check: {
        messages: [
          { role: 'user', content: 'Which metal has number 79?' },
          {
            role: 'assistant',
            content: '',
            tool_calls: [{ id: 'abcdefghi', type: 'function', function: { name: 'lookup', arguments: '{"number": 79}' } }],
          },
          { role: 'tool', tool_call_id: 'abcdefghi', name: 'lookup', content: 'gold' },
        ],
        tools: [
          { type: 'function', function: { name: 'lookup', parameters: { type: 'object', properties: { number: { type: 'integer' } } } } },
        ],
        templateArguments: { enable_thinking: false },
      },
    },
    arrays: { renderedIds: Int32Array.of(256, 117, 115, 101, 114, 10) },
  },
  files: {
    message: { type: 'files', files: [{ name: 'tokenizer.json' }, { name: 'chat_template.jinja' }, { name: 'merges.txt' }] },
    arrays: { 'tokenizer.json': bytes('{"version":"1.0"}'), 'chat_template.jinja': bytes('{{ x }}'), 'merges.txt': new Uint8Array() },
  },
  submit: {
    message: {
      type: 'submit',
      key,
      partition: 'train',
      step: 3,
      uid: 'g-1',
      sample: 0,
      row: {
        prompt: [{ role: 'user', content: 'Which metal has number 79?' }],
        dataSource: 'metals',
        rewardModel: { style: 'rule', ground_truth: 'gold' },
        extraInfo: { split: 'train', index: 7, level: null },
        index: 7,
        columns: { weight: 0.5, tags: ['a', ['b']] },
      },
      sampling: { temperature: 1, topP: 1, topK: -1, repetitionPenalty: 1 },
      deadlineMs: 60_000,
    },
    arrays: {},
  },
  cancel: { message: { type: 'cancel', key, reason: 'run() was cancelled' }, arrays: {} },
  generated: {
    message: { type: 'generated', id: 1, finish: 'stop', minVersion: 2, maxVersion: 3 },
    arrays: { ids: Int32Array.of(111, 107, 257), logprobs: Float32Array.of(-0.5, -0, -17.25) },
  },
  'generated-aborted': {
    message: { type: 'generated', id: 2, finish: 'aborted', minVersion: 2, maxVersion: 2 },
    arrays: { ids: new Int32Array(), logprobs: new Float32Array() },
  },
  'generate-failed': { message: { type: 'generate-failed', id: 2_147_483_648, error: failure }, arrays: {} },
  weights: { message: { type: 'weights', version: 4 }, arrays: {} },
  accepted: { message: { type: 'accepted', key }, arrays: {} },
  refused: { message: { type: 'refused', key, error: failure }, arrays: {} },
  welcome: {
    message: {
      type: 'welcome',
      protocol: 2,
      service: '0.1.0',
      needFiles: true,
      graceMs: 30_000,
      pingMs: 15_000,
      settings: { rolloutTimeoutMs: null, reward: 'service', rowSelection: 'all' },
    },
    arrays: {},
  },
  ready: { message: { type: 'ready' }, arrays: {} },
  rejected: {
    message: { type: 'rejected', error: { code: 'CHANNEL_PROTOCOL', message: 'Another protocol.', retryable: false } },
    arrays: {},
  },
  queued: { message: { type: 'queued', key }, arrays: {} },
  started: { message: { type: 'started', key }, arrays: {} },
  generate: {
    message: {
      type: 'generate',
      id: 1,
      key,
      agent: 'élève',
      trajectory: 'élève:plan.0.1',
      turn: 0,
      sampling: { temperature: 0.7, topP: 1, topK: 0, maxTokens: 256, stop: ['\n\n'] },
    },
    arrays: { promptIds: Int32Array.of(256, 0, 2_147_483_647) },
  },
  abort: { message: { type: 'abort', id: 1 }, arrays: {} },
  result: {
    message: {
      type: 'result',
      key,
      status: 'done',
      stopReason: 'completed',
      reward: 0.25,
      scores: { exact: 0 },
      error: null,
      turns: 2,
      generateMs: 12.5,
      toolMs: 0,
      rows: [
        { agent: 'plan', trajectory: 'plan', promptLength: 2, length: 3, minVersion: 2, maxVersion: 2, turns: [0], reward: 0.25 },
        { agent: 'act', trajectory: 'act:2', promptLength: 1, length: 5, minVersion: 2, maxVersion: 3, turns: [0, 1], reward: 0.25 },
      ],
      omitted: { 'abandoned-turn': 4 },
      answer: 'gold',
      solution: 'gold',
    },
    arrays: {
      'ids.0': Int32Array.of(5, 6, 257),
      'mask.0': Uint8Array.of(0, 0, 1),
      'logprobs.0': Float32Array.of(0, 0, -0.5),
      'ids.1': Int32Array.of(5, 7, 257, 9, 257),
      'mask.1': Uint8Array.of(0, 1, 1, 0, 1),
      'logprobs.1': Float32Array.of(0, -1, -0.25, 0, -0.125),
    },
  },
  'result-failed': {
    message: {
      type: 'result',
      key,
      status: 'failed',
      stopReason: null,
      reward: null,
      scores: {},
      error: { code: 'ROLLOUT_CANCELLED', message: 'Cancelled.', retryable: true },
      turns: 0,
      generateMs: 0,
      toolMs: 0,
      rows: [],
      omitted: {},
      answer: null,
      solution: null,
    },
    arrays: {},
  },
  error: { message: { type: 'error', message: 'A message cannot be read.' }, arrays: {} },
}

const fromClient = new Set(['hello', 'files', 'submit', 'cancel', 'generated', 'generate-failed', 'weights', 'accepted', 'refused'])

/** One message of every kind and every edge of the format, by the name of its corpus file. */
export const goldenMessages: Readonly<Record<string, GoldenMessage>> = Object.fromEntries(
  Object.entries(messages).map(([name, golden]) => [name, { from: fromClient.has(golden.message.type) ? 'client' : 'service', ...golden }]),
)
