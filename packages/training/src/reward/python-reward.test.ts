import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Message, type Reward, scoringContext } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { rewardInput } from '../testing/reward-input.ts'
import { type CreateRewardOptions, createReward } from './create-reward.ts'
import { gaiaRewardFunc } from './gaia-reward.ts'

let directory: string
let rewards: Reward[]
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'aworld-train-python-reward-'))
  rewards = []
})
afterEach(async () => {
  for (const reward of rewards) await reward.close()
  vi.unstubAllEnvs()
  await rm(directory, { recursive: true, force: true, maxRetries: 3 })
})

const { signal } = new AbortController()
const head = (name: string) => `def ${name}(data_source, solution_str, ground_truth, extra_info=None):\n`

async function python(body: string, { source = './reward.py#f', ...options }: CreateRewardOptions & { source?: string } = {}) {
  await writeFile(join(directory, 'reward.py'), body)
  const reward = await createReward(source, { baseDirectory: directory, ...options })
  rewards.push(reward)
  return reward
}

const makeInput = (answer: string | null = 'gold', groundTruth: unknown = 'gold') =>
  rewardInput([{ role: 'assistant', content: answer }], groundTruth)

const score = (reward: Reward, input = makeInput()) => reward.score(input, scoringContext(signal))

describe('what a function in Python gets and gives', () => {
  it('gets data source, answer, truth and extra information by name, as verl calls it', async () => {
    const body =
      'def f(ground_truth, extra_info, data_source, solution_str):\n  return float([data_source, solution_str, ground_truth, extra_info] == ["metals", "gold ö", ["gold", 1, None], {"level": 2}])'
    expect(await score(await python(body), makeInput('gold ö', ['gold', 1, null]))).toEqual({ reward: 1, scores: {} })
  })

  it('gets them by position where it calls them otherwise', async () => {
    expect((await score(await python('def f(a, b, c, d):\n  return len(a) + len(b) + d["level"]'))).reward).toBe(12)
  })

  it('may be asynchronous, return what is awaited, or be an object that is called', async () => {
    const bodies = [
      `import asyncio\nasync def f(data_source, solution_str, ground_truth, extra_info=None):\n  await asyncio.sleep(0)\n  return 0.5`,
      `async def g():\n  return 0.5\n${head('f')}  return g()`,
      `class Judge:\n  async def __call__(self, data_source, solution_str, ground_truth, extra_info=None):\n    return 0.5\nf = Judge()`,
    ]
    for (const body of bodies) expect((await score(await python(body))).reward).toBe(0.5)
  })

  it('returns a number of any kind, or a dict with score, whose other numbers are scores', async () => {
    const reward = await python(`from decimal import Decimal\n${head('f')}  return eval(solution_str)`)
    const of = (text: string) => score(reward, makeInput(text))
    expect(await of('True')).toEqual({ reward: 1, scores: {} })
    expect(await of("Decimal('0.25')")).toEqual({ reward: 0.25, scores: {} })
    expect(await of("{'score': 1, 'format': 0.5, 'acc': False, 'pred': 'x', 'nothing': None}")).toEqual({
      reward: 1,
      scores: { format: 0.5, acc: 0 },
    })
    expect(await of("{'score': 1, 'agents': {'reader': Decimal('0.5'), 'lead': 0}}")).toEqual({
      reward: 1,
      scores: {},
      agents: { reader: 0.5, lead: 0 },
    })
    expect(await of("{'score': 1, 'agents': 3}")).toEqual({ reward: 1, scores: { agents: 3 } })
    expect(await of('None')).toEqual({ reward: null, scores: {} })
    expect(await of("{'score': None, 'length': 3}")).toEqual({ reward: null, scores: { length: 3 } })
    for (const [text, message] of [
      ["float('nan')", 'returned float nan'],
      ["'1'", "returned str '1'"],
      ["{'acc': 1}", `returned a dict without "score" (it has 'acc')`],
      ["{'score': 'x'}", `returned a dict whose "score" is str 'x'`],
      ["{'score': 1, 'agents': {'lead': 1, 'reader': float('nan')}}", `returned a dict whose "agents" has for 'reader' float nan`],
      ["{'score': 1, 'agents': {'reader': '1'}}", `returned a dict whose "agents" has for 'reader' str '1'`],
      ["{'score': 1, 'agents': ['reader']}", `returned a dict whose "agents" is list ['reader']`],
    ] as const)
      await expect(of(text)).rejects.toMatchObject({ code: 'REWARD_INVALID', message: expect.stringContaining(message) })
  })

  it('may print and read standard input without harm to the protocol', async () => {
    const body = `import os, sys\nprint("{}")\n${head('f')}  print('{"id": 0, "kind": "value", "reward": 9, "scores": {}}')\n  os.write(1, b"raw\\n")\n  return float(sys.stdin.read() == "")`
    const reward = await python(body)
    expect((await score(reward)).reward).toBe(1)
    expect((await score(reward)).reward).toBe(1)
  })

  it('imports what lies beside it, and sees neither the tokens of a run nor its settings', async () => {
    await writeFile(join(directory, 'helper.py'), 'weight = 0.75\n')
    vi.stubEnv('AWORLD_TRAIN_CHANNEL_TOKEN', 'secret')
    const body = `import os\nfrom helper import weight\n${head('f')}  return weight if not any(k.startswith("AWORLD_TRAIN") for k in os.environ) else 0`
    expect((await score(await python(body))).reward).toBe(0.75)
  })
})

describe('which function', () => {
  it('is the one named as the file, compute_score, or the only one, where no name is given', async () => {
    for (const body of [
      `${head('other')}  return 0\n${head('reward')}  return 1`,
      `${head('a')}  return 0\n${head('compute_score')}  return 1`,
      `from os.path import join\n${head('alone')}  return 1`,
    ])
      expect((await score(await python(body, { source: './reward.py' }))).reward).toBe(1)
  })

  it.each([
    [
      './reward.py#gaia_reward_fun',
      /has no function "gaia_reward_fun"\. Did you mean "gaia_reward_func"\? It has "gaia_reward_func", "other"\./,
    ],
    ['./reward.py', /has "gaia_reward_func", "other"; name the reward among them/],
    ['./reward.py#other', /"other" of .*reward\.py takes \(x\); a reward is called with four values/],
    ['./missing.py#f', /no reward module .*missing\.py/],
  ])('%s is refused with what the file has', async (source, message) => {
    const body = `import json\n${head('gaia_reward_func')}  return 1\ndef other(x):\n  return 1\nclass Thing: pass\ndef _private(): pass`
    await expect(python(body, { source })).rejects.toMatchObject({ code: 'MODULE_INVALID', message: expect.stringMatching(message) })
  })

  it.each([
    [
      'import no_such_package',
      /ModuleNotFoundError: No module named 'no_such_package' \(.*reward\.py:1\)\. Install it for this Python, or set AWORLD_TRAIN_PYTHON/,
    ],
    ['def f(:', /SyntaxError/],
    ['import sys\nsys.exit(3)', /SystemExit: 3/],
    ['import os\nprint("giving up", flush=True)\nos._exit(7)', /it ended with code 7\. It last wrote: giving up/],
  ])('a file that does not load is refused: %s', async (body, message) => {
    await expect(python(body)).rejects.toMatchObject({ code: 'MODULE_INVALID', message: expect.stringMatching(message) })
  })

  it('a Python that is not there is refused with the remedy', async () => {
    await expect(python(`${head('f')}  return 1`, { python: '/no/such/python' })).rejects.toThrow(
      /no such program; install Python 3, or set AWORLD_TRAIN_PYTHON/,
    )
  })
})

describe('what goes wrong in a call', () => {
  it('names file, function and line of an exception, and scores the next call', async () => {
    const reward = await python(`${head('f')}  return 1 / len(solution_str)`)
    await expect(score(reward, makeInput(''))).rejects.toThrow(
      /Reward "f" of .*reward\.py failed on task "t": ZeroDivisionError: .* \(.*reward\.py:2\)\./,
    )
    expect((await score(reward)).reward).toBe(0.25)
  })

  it('an exit of the user, in a function of either kind, fails the call and nothing else', async () => {
    for (const def of ['def', 'async def']) {
      const reward = await python(
        `import sys\n${def} f(data_source, solution_str, ground_truth, extra_info=None):\n  if solution_str == "exit": sys.exit(1)\n  return 1`,
      )
      const [exit, fine] = await Promise.allSettled([score(reward, makeInput('exit')), score(reward)])
      expect(exit).toMatchObject({ reason: { code: 'REWARD_FAILED', message: expect.stringContaining('SystemExit') } })
      expect(fine).toMatchObject({ value: { reward: 1 } })
    }
  })

  it('runs several calls at once, each with its own answer', async () => {
    const body = `import threading\nbarrier = threading.Barrier(6, timeout=60)\n${head('f')}  barrier.wait()\n  return int(solution_str)`
    const reward = await python(body)
    const outputs = await Promise.all([0, 1, 2, 3, 4, 5].map((each) => score(reward, makeInput(`${each}`))))
    expect(outputs.map((each) => each.reward)).toEqual([0, 1, 2, 3, 4, 5])
  })

  it.each(['time.sleep(60)', 'await asyncio.sleep(60)'])(
    'a call over its deadline is REWARD_TIMEOUT, its neighbours and successors score: %s',
    async (wait) => {
      const def = wait.startsWith('await') ? 'async def' : 'def'
      const body = `import asyncio, time\n${def} f(data_source, solution_str, ground_truth, extra_info=None):\n  if solution_str == "hang":\n    ${wait}\n  time.sleep(0.05)\n  return 1`
      const reward = await python(body, { timeoutMs: 3_000 })
      const hanging = Array.from({ length: 12 }, () => score(reward, makeInput('hang')))
      const outcomes = await Promise.allSettled([...hanging, ...Array.from({ length: 9 }, () => score(reward))])
      for (const outcome of outcomes.slice(0, 12)) expect(outcome).toMatchObject({ reason: { code: 'REWARD_TIMEOUT' } })
      for (const outcome of outcomes.slice(12)) expect(outcome).toMatchObject({ value: { reward: 1 } })
    },
  )

  it('a call that ends the process fails alone: what ran beside it runs again', async () => {
    const body = `import os, time\n${head('f')}  time.sleep(0.02 if solution_str == "die" else 0.1)\n  if solution_str == "die": os.abort()\n  return 1`
    const reward = await python(body)
    const outcomes = await Promise.allSettled([score(reward), score(reward, makeInput('die')), score(reward), score(reward)])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(outcomes[1]).toMatchObject({
      reason: { code: 'REWARD_PROCESS_DIED', message: expect.stringContaining('it was ended by SIGABRT') },
    })
    expect((await score(reward)).reward).toBe(1)
  })

  it.runIf(process.platform === 'linux')('a call over its memory is refused, and the next one scores', async () => {
    const reward = await python(`${head('f')}  return len(bytearray(int(solution_str) * 2**20)) > 0`, { memoryMb: 64 })
    await expect(score(reward, makeInput('500'))).rejects.toThrow(
      /used more than 64 MB beside what its imports take; raise reward\.memoryMb/,
    )
    expect((await score(reward, makeInput('20'))).reward).toBe(1)
  })

  it('a call that is aborted is given up at once, queued or running, and a closed reward says so', async () => {
    const reward = await python(`import time\n${head('f')}  time.sleep(30 if solution_str == "long" else 0)\n  return 1`, {
      timeoutMs: 60_000,
    })
    const abort = new AbortController()
    const calls = Array.from({ length: 12 }, () => reward.score(makeInput('long'), scoringContext(abort.signal)))
    abort.abort(new Error('stopped'))
    for (const call of calls) await expect(call).rejects.toThrow('stopped')
    const pending = expect(score(reward)).rejects.toMatchObject({ code: 'REWARD_FAILED' })
    await reward.close()
    await pending
    await expect(score(reward)).rejects.toThrow(/is closed/)
  })
})

/** GAIA's scorer in Python, written for this test. */
const gaia = `
import re
import string

SEPARATORS = re.compile("[,;]")


def as_number(text):
    try:
        return float(re.sub("[$%,]", "", text))
    except ValueError:
        return float("inf")


def is_number(value):
    try:
        float(value)
    except ValueError:
        return False
    return True


def plain(text, punctuation):
    text = re.sub(r"\\s", "", text).lower()
    return text if punctuation else text.translate(str.maketrans("", "", string.punctuation))


def same(answer, truth, punctuation):
    return as_number(answer) == float(truth) if is_number(truth) else plain(answer, punctuation) == plain(truth, punctuation)


def right(answer, truth):
    if is_number(truth) or not SEPARATORS.search(truth):
        return same(answer, truth, False)
    answers, truths = SEPARATORS.split(answer), SEPARATORS.split(truth)
    return len(answers) == len(truths) and all(same(a, t, True) for a, t in zip(answers, truths))


def gaia_reward_func(data_source, solution_str, ground_truth, extra_info=None):
    found = re.search("<answer>(.*?)</answer>", solution_str, re.DOTALL)
    return 1.0 if found and right(found.group(1).strip(), ground_truth) else 0.0
`

describe('one score in both languages', () => {
  type Golden = readonly [name: string, args: readonly [string, string, unknown], result: unknown]
  const goldens = JSON.parse(readFileSync(new URL('../goldens/gaia-goldens.json', import.meta.url), 'utf8')) as Golden[]
  const cases = goldens.filter(([name]) => name === 'gaia_reward_func').map(([, [, solution, truth]]) => ({ solution, truth }))

  it('gaiaRewardFunc and the same reward in Python give one score for every episode of a table', async () => {
    const inPython = await python(gaia, { source: './reward.py#gaia_reward_func' })
    const inTypeScript = await createReward(gaiaRewardFunc)
    let ones = 0
    for (const rewardCase of cases) {
      const input = makeInput(rewardCase.solution, rewardCase.truth)
      const outcome = async (reward: Reward) => await score(reward, input).catch(({ code }) => code as string)
      const [one, other] = [await outcome(inPython), await outcome(inTypeScript)]
      expect(one, JSON.stringify(rewardCase)).toEqual(other)
      if (typeof one === 'object') ones += one.reward ?? 0
    }
    expect(ones).toBeGreaterThan(10)
    expect(ones).toBeLessThan(cases.length - 10)
  })

  it.each(['answer', 'full-response'] as const)('both get the same text of an episode with tools: %s', async (kind) => {
    const messages: Message[] = [
      { role: 'assistant', content: 'let me see', toolCalls: [{ id: 'c', name: 'lookup', arguments: '{"n": 79}' }] },
      { role: 'tool', content: 'gold 🥇', toolCallId: 'c' },
      { role: 'assistant', content: '<answer>gold</answer>' },
    ]
    const input = rewardInput(messages)
    let seen = ''
    const inTypeScript = await createReward(
      (_: string, solution: string) => {
        seen = solution
        return 0
      },
      { rewardInput: kind },
    )
    await score(inTypeScript, input)
    const inPython = await python(`${head('f')}  return solution_str == ground_truth`, { rewardInput: kind })
    expect((await score(inPython, { ...input, answer: { ...input.answer, groundTruth: seen } })).reward).toBe(1)
    expect(seen.length).toBe(kind === 'answer' ? 21 : 58)
  })
})
