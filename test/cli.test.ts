import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type RunReport, TrainingSample, Turn, toTrainingSamples } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { writeScriptedPython } from '../packages/aworld-train/src/testing/scripted-python.ts'
import { parseEvents, repository, runCli } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject, type TinyProject, taskLines } from './support/tiny-project.ts'

let folder: string
let model: string
let project: TinyProject
let run: string
let trained: Awaited<ReturnType<typeof runCli>>

const changes = { definition: { testDataset: './test.jsonl' }, files: { 'test.jsonl': `${taskLines(5, 90)}\n` } }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-cli-'))
  model = await makeTinyModel(join(folder, 'model'))
  project = await makeProject(folder, model, changes)
  trained = await runCli(['train', project.folder, '--json', '--seed', '3'])
  run = (await project.runs())[0] as string
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** The same tasks with a column that no name of ours is like. */
const withKind = (lines: string) => lines.replaceAll('{', '{"kind": "even",')

const reportOf = async (path: string) => JSON.parse(await readFile(join(path, 'report.json'), 'utf8')) as RunReport
const rewardsOf = async (path: string) => (await reportOf(path)).curve.map(({ metrics }) => metrics['rewardMean'])

describe('--help', () => {
  it('has no line that a terminal of 80 columns cuts', async () => {
    const { code, stdout } = await runCli(['--help'])
    expect([code, stdout.replaceAll(/\s+/g, ' ')]).toEqual([0, expect.stringContaining('141 stopped because nobody reads the output.')])
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
  })
})

describe('setup', () => {
  it('says what an environment takes before it makes one', async () => {
    const { code, stdout, stderr } = await runCli(['setup', 'trl', '--torch', 'cpu', '--directory', folder])
    expect([code, stderr]).toEqual([1, expect.stringContaining('was not made by setup')])
    expect(stdout.split('\n')[1]).toMatch(
      /^ {2}about \d\.\d GB and \d+ s for a processor, with downloads cached; hard links into uv's cache$/,
    )
  })
})

describe('train', () => {
  it('--json prints nothing but events, from run-start to run-end', async () => {
    expect(trained.code, trained.stdout + trained.stderr).toBe(0)
    const events = parseEvents(trained.stdout)
    expect(events[0]).toMatchObject({ type: 'run-start', version: 1, seed: 3, resumedFromStep: null })
    expect(events[0]).toMatchObject({ details: { agent: 'tiny trained' } })
    expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })
    expect(events.filter(({ type }) => type === 'step-end')).toHaveLength(2)
    const names = events.flatMap((event) => (event.type === 'evaluation-end' ? [event.name] : []))
    expect(names).toEqual(['before', 'after'])
    expect(events.filter(({ type }) => type === 'rollout-end')).toHaveLength((await reportOf(run)).counts.rollouts)
    expect(await readFile(join(run, 'events.jsonl'), 'utf8')).toBe(trained.stdout)
  })

  it('in a log prints plain lines: the run, a curve, before and after, and what to type next', async () => {
    const files = { 'train.jsonl': `${withKind(taskLines(4))}\n`, 'test.jsonl': `${withKind(taskLines(5, 90))}\n` }
    const other = await makeProject(folder, model, { ...changes, files })
    const { code, stdout } = await runCli(['train', other.folder, '--seed', '3'])
    expect(code).toBe(0)
    expect(stdout).not.toMatch(/\u001b|\r|warning/)
    expect(stdout.match(/^note .*/gm)).toEqual([expect.stringContaining('"kind" goes to the reward')])
    for (const part of [
      'run ',
      'plain SIMD',
      'before: reward',
      'train: 2/2',
      'mean reward of each step',
      'held-out reward',
      'unexplained',
      'next',
    ])
      expect(stdout).toContain(part)
    expect(await rewardsOf((await other.runs())[0] as string)).toEqual(await rewardsOf(run))
  })

  it('--dry-run ends with 1 where this machine cannot train what the trainer takes', async () => {
    const directory = await mkdtemp(join(folder, 'python-'))
    const { python } = await writeScriptedPython(directory)
    const config = { trainer: { n_gpus_per_node: 1000 }, data: { max_prompt_length: 128, max_response_length: 64 } }
    const { folder: place } = await makeProject(folder, model, { config })
    const env = { AWORLD_TRAIN_PYTHON: python }
    const { code, stdout, stderr } = await runCli(['train', place, '--engine', 'verl', '--dry-run'], { env })
    expect(code, stdout + stderr).toBe(1)
    expect(stdout).toContain('takes this configuration; nothing was started.')
    expect(stdout).toMatch(/^This machine cannot train it: .+/m)
  })

  it('another seed gives another curve; --new starts over and --resume goes on with the run named', async () => {
    const { runs, folder: place } = await makeProject(folder, model, changes)
    const stopped = await runCli(['train', place, '--seed', '4', '--json'], {
      onLine: (line, child) => line.includes('"step-end"') && child.kill('SIGTERM'),
    })
    expect(stopped.code).toBe(130)
    const [first] = await runs()
    expect((await runCli(['train', place, '--seed', '4', '--new'])).code).toBe(0)
    const [, second, ...others] = await runs()
    expect(others).toEqual([])
    expect(await rewardsOf(second as string)).not.toEqual(await rewardsOf(run))
    const resumed = await runCli(['train', place, '--seed', '4', '--resume', basename(first as string), '--json'])
    expect(resumed.code, resumed.stderr).toBe(0)
    expect(parseEvents(resumed.stdout)[0]).toMatchObject({ type: 'run-start', resumedFromStep: expect.any(Number) })
    expect(await rewardsOf(first as string)).toEqual(await rewardsOf(second as string))
    const both = await runCli(['train', place, '--new', '--resume', basename(first as string)])
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('exclude each other') })
    const unknown = await runCli(['train', place, '--resume', 'nowhere'])
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringMatching(/There is no run .*nowhere\. Runs there: /) })
  })
})

describe('eval', () => {
  it('gives pass@k of the trained policy, the same for the same seed', async () => {
    const args = ['eval', project.folder, '--model', run, '--samples', '4', '--run-path', join(folder, 'evals')]
    const [once, again] = [await runCli(args), await runCli([...args, '--json'])]
    expect(once.code, once.stderr).toBe(0)
    const shown = Object.fromEntries([...once.stdout.matchAll(/ {2,}(\d): ([\d.]+) \[/g)].map(([, k, value]) => [k, Number(value)]))
    expect(Object.keys(shown)).toEqual(['2', '4'])
    expect(shown['4']).toBeGreaterThanOrEqual(shown['2'] as number)
    const end = parseEvents(again.stdout).find((event) => event.type === 'evaluation-end')
    expect(end?.metrics['rollouts']).toBe(20)
    expect(end?.metrics['pass@4']).toBeCloseTo(shown['4'] as number, 3)
  })
})

describe('view', () => {
  it('takes a run by its name, and refuses one that is not there', async () => {
    const [runs, name] = [dirname(run), basename(run)]
    const file = join(folder, 'run.html')
    expect(await runCli(['view', name, '--runs', runs, '--export', file])).toMatchObject({ code: 0 })
    expect(await readFile(file, 'utf8')).toContain(name)
    for (const missing of ['nowhere', join(folder, 'nowhere')])
      expect(await runCli(['view', missing, '--runs', runs])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/nowhere is not a run.*Name a folder below runs/),
      })
  })
})

describe('replay', () => {
  it('prints an episode, all of them, or their token counts', async () => {
    const chosen = await runCli(['replay', run])
    expect(chosen.code, chosen.stderr).toBe(0)
    expect(chosen.stdout).toMatch(/^evaluation\/after\/\d+\/0 {2}attempt 0/)
    expect(chosen.stdout.match(/attempt 0/g)?.length).toBeLessThanOrEqual(2)
    const one = await runCli(['replay', run, '--split', 'test'])
    expect(one.code, one.stderr).toBe(0)
    expect(one.stdout).toMatch(/task task-9\d {2}\w+\ntask {4}Is 9\d even\?\npolicy {2}/)
    expect(one.stdout.match(/attempt 0/g)).toHaveLength(1)
    const all = await runCli(['replay', run, '--split', 'train', '--all', '--tokens'])
    expect(all.stdout.match(/attempt 0/g)).toHaveLength(16)
    expect(all.stdout).toMatch(/turn 0: \d+ prompt \+ \d+ sampled/)
  })

  it('scores again with another reward, beside the one it had', async () => {
    const reward = join(folder, 'other-reward.ts')
    await writeFile(reward, "export const saysNo = (_d: string, said: string) => (said.trim() === 'no' ? 10 : 20)\n")
    const { code, stdout, stderr } = await runCli(['replay', run, '--all', '--reward', `${reward}#saysNo`])
    expect(code, stderr).toBe(0)
    const rescored = [...stdout.matchAll(/policy {2}(.*)\n(?:.*\n)*?rescored (\d+) {2}\(was (\d)\)/g)]
    expect(rescored.length).toBeGreaterThan(10)
    for (const [, answer, value] of rescored) expect(value).toBe(answer?.trim() === 'no' ? '10' : '20')
  })

  it('names what is not there', async () => {
    expect(await runCli(['replay', join(folder, 'nowhere')])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/nowhere is not a run.*Name a folder below runs/),
    })
    expect(await runCli(['replay', run, '--task', 'task-1'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/No episode of .* matches/),
    })
  })
})

describe('export', () => {
  /** What the trainer was given, from the record. */
  function samplesOf(): TrainingSample[] {
    const reader = readRun(run)
    try {
      return [...reader.episodes({ split: 'train' })].flatMap((episode) => [...toTrainingSamples(episode).samples])
    } finally {
      reader.close()
    }
  }

  it('writes training samples as JSONL that parse as what was trained', async () => {
    const file = join(folder, 'samples.jsonl')
    const { code, stdout } = await runCli(['export', run, '--to', file])
    expect({ code, stdout }).toEqual({ code: 0, stdout: `16 samples of split train written to ${file}\n` })
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    expect(lines.map((line) => TrainingSample.parse(JSON.parse(line)))).toEqual(samplesOf())
  })

  it('writes them as Parquet, token arrays as lists', async () => {
    const file = join(folder, 'samples.parquet')
    const { code, stderr } = await runCli(['export', run, '--to', file, '--split', 'train'])
    expect(code, stderr).toBe(0)
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) })
    const samples = samplesOf()
    expect(rows).toHaveLength(samples.length)
    for (const [index, sample] of samples.entries()) {
      const row = rows[index] as Record<string, unknown>
      expect(Array.from(row['tokenIds'] as Iterable<unknown>, Number)).toEqual([...sample.tokenIds])
      expect(Array.from(row['lossMask'] as Iterable<unknown>, Number)).toEqual([...sample.lossMask])
      expect(row['group']).toBe(sample.group)
      expect(Number(row['reward'])).toBe(sample.reward)
    }
  })

  it('writes whole episodes, and only good ones where that is asked', async () => {
    const file = join(folder, 'good.jsonl')
    const { code } = await runCli(['export', run, '--to', file, '--what', 'episodes', '--min-reward', '1'])
    expect(code).toBe(0)
    const episodes = (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(episodes.length).toBeGreaterThan(0)
    expect(new Set(episodes.map(({ reward }) => reward))).toEqual(new Set([1]))
  })

  it('refuses another format', async () => {
    expect(await runCli(['export', run, '--to', join(folder, 'samples.xml')])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/ends in neither \.jsonl nor \.parquet; choose one/),
    })
  })
})

describe('doctor', () => {
  it('finds nothing wrong with a good project, and runs one rollout with its tokens', async () => {
    const { code, stdout } = await runCli(['doctor', project.folder])
    expect(stdout).toContain('no problems')
    expect(code).toBe(0)
    for (const part of [
      /node +v\d+/,
      /simd +plain/,
      /threads +\d/,
      /agent +tiny \(trained\)/,
      /dataset +4 to train, 5 held out/,
      /reward .*limits of time/,
      /tools +none declared/,
      /template +round trip holds/,
      /\d+ tokens sampled, \d+ with loss mask 1/,
    ])
      expect(stdout).toMatch(part)
  })

  it('names five problems at once, and ends with code 1', async () => {
    const bad = await makeProject(folder, join(folder, 'no-model'), {
      definition: {
        agent: './agent.ts#agnet',
        rewardFunc: './reward.ts#nope',
        trainDataset: './trian.jsonl',
        testDataset: './train.jsonl',
      },
      config: { concurency: 3 },
      files: { 'train.jsonl': '{"prompt": "Is 1 even?"}\n' },
    })
    const { code, stdout } = await runCli(['doctor', bad.folder])
    expect(code).toBe(1)
    for (const part of [
      /"agnet"; did you mean "agent"/,
      /"nope"/,
      /trian\.jsonl: there is no such file/,
      /row 1.*has no answer/,
      /"concurency" is no key/,
    ])
      expect(stdout).toMatch(part)
  })

  it('--template checks a model folder by itself', async () => {
    const { code, stdout } = await runCli(['doctor', '--template', 'examples/periodic-table/model'])
    expect(stdout).toMatch(/template +renders, and its text survives the tokenizer/)
    expect(code).toBe(0)
    const damaged = join(folder, 'damaged')
    await cp(model, damaged, { recursive: true })
    await writeFile(join(damaged, 'chat_template.jinja'), '{% for message in messages %}{{ message.content }')
    const bad = await runCli(['doctor', '--template', damaged])
    expect(bad.stdout).toMatch(/problem +template/)
    expect(bad.code).toBe(1)
  })
})

describe('serve', () => {
  it('answers the openai client, records its turns, and ends at SIGTERM', async () => {
    const turns = join(folder, 'turns.jsonl')
    const child = spawn(
      process.execPath,
      [
        join(repository, 'packages/cli/src/main.ts'),
        'serve',
        model,
        '--port',
        '0',
        '--temperature',
        '0',
        '--max-tokens',
        '8',
        '--record',
        turns,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    try {
      let shown = ''
      const baseURL = await new Promise<string>((resolve, reject) => {
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          shown += text
          const found = /baseURL +(\S+)\n/.exec(shown)?.[1]
          if (found) resolve(found)
        })
        child.on('exit', () => reject(new Error(`serve ended: ${shown}`)))
      })
      expect(baseURL).toMatch(/^http:\/\/127\.0\.0\.1:\d+\//)
      const client = new OpenAI({ baseURL, apiKey: 'any', maxRetries: 0 })
      const ask = { model: /model +(\S+),/.exec(shown)?.[1] ?? '', messages: [{ role: 'user' as const, content: 'Is 12 even?' }] }
      const answer = await client.chat.completions.create(ask)
      expect(answer.choices[0]?.message.content).toMatch(/^(yes|no)/)
      expect(answer.usage?.completion_tokens).toBeGreaterThan(0)
      let streamed = ''
      for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }))
        streamed += chunk.choices[0]?.delta.content ?? ''
      expect(streamed).toBe(answer.choices[0]?.message.content)
      const lines = (await readFile(turns, 'utf8')).trim().split('\n')
      expect(lines.map((line) => z.decode(Turn, JSON.parse(line)).message.content)).toEqual([streamed, streamed])
      const ended = new Promise((resolve) => child.on('exit', resolve))
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('refuses a record that cannot be written', async () => {
    const { code, stderr } = await runCli(['serve', model, '--port', '0', '--record', join(folder, 'nowhere', 'turns.jsonl')])
    expect(stderr).toMatch(/^Turns cannot be recorded in .*nowhere.*ENOENT/)
    expect(code).toBe(2)
  })
})
