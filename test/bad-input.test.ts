import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { episodesOf, makeProject, openTrainer, type ProjectChanges, type TinyProject, taskLines } from './support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-bad-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** What `validate()` or the constructor says. */
async function refusal(project: TinyProject, options: Parameters<typeof openTrainer>[1] = {}): Promise<TrainError> {
  try {
    await (await openTrainer(project, options)).validate()
  } catch (error) {
    if (error instanceof TrainError) return error
    throw error
  }
  throw new Error('the configuration was taken')
}

/** What the command line ends with code 2 for. */
const isMisuse = ({ boundary, code }: TrainError) => boundary === 'config' || code === 'AGENT_INVALID'

const row = (fields: Record<string, unknown>) => `${JSON.stringify({ id: 'a', prompt: 'Is 1 even?', answer: 'no', ...fields })}\n`

describe('a configuration that cannot be trained is refused with code 2 and leaves no run', () => {
  const cases: readonly (readonly [string, ProjectChanges, RegExp])[] = [
    ['an empty dataset', { files: { 'train.jsonl': '' } }, /train\.jsonl: the file is empty; it needs at least one row/],
    ['a missing dataset', { definition: { trainDataset: './trian.jsonl' } }, /trian\.jsonl: there is no such file; correct the path/],
    [
      'a truncated dataset',
      { files: { 'train.jsonl': `${taskLines(2)}\n{"id": "task-12", "pro` } },
      /train\.jsonl.*row 3.*not JSON.*seems to be truncated/,
    ],
    [
      'a dataset that is not UTF-8',
      { files: { 'train.jsonl': Buffer.from(row({ prompt: 'élan?' }), 'latin1') } },
      /train\.jsonl: the file is not valid UTF-8 \(line 1\); save it as UTF-8/,
    ],
    [
      'a dataset in UTF-16',
      { files: { 'train.jsonl': Buffer.from(`\ufeff${row({})}`, 'utf16le') } },
      /train\.jsonl: the file is UTF-16; save it as UTF-8/,
    ],
    [
      'a dataset of another format',
      { definition: { trainDataset: './train.xlsx' }, files: { 'train.xlsx': 'x' } },
      /train\.xlsx: "\.xlsx" is no format of a dataset; use \.jsonl/,
    ],
    [
      'a Parquet file that is none',
      { definition: { trainDataset: './train.parquet' }, files: { 'train.parquet': 'PAR1' } },
      /train\.parquet/,
    ],
    ['a prompt of another type', { files: { 'train.jsonl': row({ prompt: 7 }) } }, /train\.jsonl.*row 1.*prompt/],
    ['a row that is no object', { files: { 'train.jsonl': '["Is 1 even?"]\n' } }, /train\.jsonl.*row 1.*a list, not an object/],
    [
      'two tasks of one id',
      { files: { 'train.jsonl': row({}) + row({ prompt: 'Is 2 even?' }) } },
      /row 2.*"a" stands in row 1 already; give each task an id of its own/,
    ],
    ['a row without an answer', { files: { 'train.jsonl': row({ answer: undefined }) } }, /row 1.*has no answer; add a column "answer"/],
    ['no dataset', { definition: { trainDataset: undefined } }, /There is no training data; pass trainDataset/],
    ['an agent module that is not there', { definition: { agent: './agnet.ts' } }, /There is no module .*agnet\.ts/],
    [
      'an agent module without the named export',
      { definition: { agent: './agent.ts#agnet' } },
      /does not export "agnet"; did you mean "agent"\?/,
    ],
    [
      'a module with an error',
      { files: { 'agent.ts': 'export const agent = nothing()\n' } },
      /agent\.ts could not be imported: nothing is not defined/,
    ],
    ['an agent that is none', { files: { 'agent.ts': 'export const agent = 3\n' } }, /is not an agent; pass an Agent/],
    [
      'an agent.yaml that names nothing',
      { definition: { agent: './agent.yaml' }, files: { 'agent.yaml': '[]\n' } },
      /agent\.yaml names no agent; give it an entry with "_target_/,
    ],
    [
      'an agent.yaml that names no export',
      { definition: { agent: './agent.yaml' }, files: { 'agent.yaml': '- name: tiny\n  _target_: ./agent.ts#Lop\n' } },
      /does not export "Lop"/,
    ],
    [
      'a reward module without the named export',
      { definition: { rewardFunc: './reward.ts#saysYess' } },
      /no export "saysYess".*Did you mean "saysYes"/,
    ],
    ['no reward', { definition: { rewardFunc: undefined } }, /There is no reward; pass rewardFunc/],
    [
      'an unknown key of the configuration',
      { config: { trainning: {} } },
      /"trainning" is no key of the configuration.*[dD]id you mean "training"/,
    ],
    [
      'an unknown key of a section',
      { config: { training: { learningrate: 1 } } },
      /"training\.learningrate" is no key of the configuration.*[dD]id you mean "learningRate"/,
    ],
    ['a value of another type', { config: { training: { steps: 'many' } } }, /"training\.steps" is "many"/],
    ['truncated sampling', { config: { sampling: { topP: 0.9 } } }, /sampling\.topP is 0\.9.*cannot be trained, set topP 1/],
    ['greedy sampling', { config: { sampling: { temperature: 0 } } }, /sampling\.temperature is 0.*set it to 1/],
    [
      'kinds that no task has',
      { config: { training: { stratify: { key: 'kind', counts: { hard: 2 } } } } },
      /training\.stratify\.key names the column "kind", which no task has/,
    ],
    [
      'kinds that only other tasks have',
      {
        config: { training: { stratify: { key: 'kind', counts: { hard: 2 } } } },
        files: { 'train.jsonl': row({ kind: 'easy' }) },
      },
      /No task has kind "hard", which training\.stratify counts/,
    ],
    [
      'results by a column that no task has',
      {
        config: { evaluation: { kindKey: 'knd' } },
        definition: { testDataset: './test.jsonl' },
        files: { 'test.jsonl': row({ kind: 'easy' }) },
      },
      /evaluation\.kindKey names the column "knd", which no task has.*Did you mean "kind"\?/,
    ],
    [
      'a model that is not there',
      { config: { model: { path: './modell' } } },
      /The model folder .*modell is not there; correct model\.path/,
    ],
    ['an unknown trainer', { definition: { trainEngineName: 'locl' } }, /"locl".*Did you mean "local"\?/s],
    [
      'an unknown trainer near another',
      { definition: { trainEngineName: 'verll' } },
      /"verll" \(known: "verl", .*"local", "tinker"\)\. Did you mean "verl"\?/,
    ],
    ['a trainer named like a member of every object', { definition: { trainEngineName: 'toString' } }, /no trainer "toString"/],
    [
      'a trainer that there is none of yet',
      { definition: { trainEngineName: 'slime' } },
      /There is no trainer "slime" \(known: "verl", .*"local", "tinker"\)\. Register a processor under that name/,
    ],
    [
      'a dataset that is a number',
      { definition: { trainDataset: 5 } },
      /the train rows: the dataset is the number 5; pass a path, a list of rows/,
    ],
    ['a test set that is an object', { definition: { testDataset: {} } }, /the test rows: the dataset is an object with the keys \(none\)/],
    ['a dataset that is null', { definition: { trainDataset: null } }, /There is no training data; pass trainDataset/],
    ['files of a dataset that are numbers', { config: { data: { trainFiles: [5] } } }, /"data\.trainFiles\.0" is 5: must be text/],
  ]

  it.each(cases)('%s', async (_, changes, message) => {
    const project = await makeProject(folder, model, changes)
    // A reward by path is tried in a thread of its own, which only cases of rewards need.
    const isOfReward = 'rewardFunc' in (changes.definition ?? {})
    const error = await refusal(project, isOfReward ? {} : { rewardFunc: () => 1 })
    expect(error.message).toMatch(message)
    expect(isMisuse(error)).toBe(true)
    expect(await project.runs()).toEqual([])
  })

  it.each([cases[0], cases[13], cases[20]] as typeof cases)('%s, in the terminal', async (_, changes, message) => {
    const project = await makeProject(folder, model, changes)
    const { code, stdout, stderr } = await runCli(['train', project.folder])
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(code, stdout).toBe(2)
    expect(await project.runs()).toEqual([])
  })

  it('names all problems at once', async () => {
    const project = await makeProject(folder, model, {
      definition: { agent: './agent.ts#agnet', rewardFunc: './reward.ts#saysYess', trainDataset: './trian.jsonl' },
      config: { model: { path: './modell' } },
    })
    const { message } = await refusal(project)
    for (const each of [/"agnet"/, /"saysYess"/, /trian\.jsonl/, /modell/]) expect(message).toMatch(each)
  })

  it('a folder without a project, and a flag that there is not', async () => {
    const nowhere = await runCli(['train', folder])
    expect(nowhere).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/has no aworld-train\.config\.ts; make a project with "aworld-train init"/),
    })
    const flag = await runCli(['train', folder, '--sed', '1'])
    expect(flag).toMatchObject({ code: 2, stderr: expect.stringMatching(/unknown option '--sed'[\s\S]*Did you mean --seed/) })
  })
})

describe('input that looks odd and is right is taken', () => {
  it('a byte order mark, and a numeric answer that stays a number', async () => {
    const project = await makeProject(folder, model, {
      config: { training: { steps: 1 } },
      files: {
        'train.jsonl': `\ufeff${row({ id: 'a', answer: 2 })}${row({ id: 'b', prompt: 'Is 2 even?', answer: 0 })}`,
        'reward.ts':
          "export const saysYes = (_d: string, said: string, truth: unknown) => (typeof truth === 'number' ? truth + (said === 'yes' ? 1 : 0) : Number.NaN)\n",
      },
    })
    const { counts, curve } = await (await openTrainer(project)).train()
    expect(counts.episodesByStopReason).toEqual({ completed: 8 })
    expect(curve[0]?.reward).toBeGreaterThanOrEqual(1)
  })
})

/** One task of each kind that a test's agent or reward tells apart by its answer. */
const tasksOf = (kinds: readonly string[]) =>
  kinds.map((kind, index) => `${JSON.stringify({ id: kind, prompt: `Is ${index} even?`, answer: kind })}\n`).join('')

/** Asks the policy once; `AGENT` in the text below is an agent of any kind. */
const askText = `
export async function ask({ baseUrl, apiKey, model }, messages) {
  const response = await fetch(baseUrl + '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + apiKey },
    body: JSON.stringify({ model, messages }),
  })
  if (!response.ok) throw new Error(response.status + ' ' + (await response.text()))
  return (await response.json()).choices[0].message
}
`

describe('a reward that misbehaves fails its episode with a reason, and is never a zero', () => {
  const bodies: Readonly<Record<string, string>> = {
    good: 'return 1',
    throws: "throw new Error('out of chalk')",
    nan: 'return Number.NaN',
    infinity: 'return Number.POSITIVE_INFINITY',
    boolean: 'return true',
    string: "return '1'",
    object: 'return { score: 1 }',
    nothing: 'return undefined',
    memory: 'const all = []; for (;;) all.push(new Array(1e6).fill(Math.random()))',
  }
  const expected: Readonly<Record<string, RegExp>> = {
    throws: /REWARD_FAILED Reward "score" failed on task "throws": out of chalk/,
    nan: /REWARD_INVALID Reward "score" returned NaN; return a finite number/,
    infinity: /REWARD_INVALID Reward "score" returned Infinity; return a finite number/,
    boolean: /REWARD_INVALID Reward "score" returned a boolean \(true\); return a finite number/,
    string: /REWARD_INVALID Reward "score" returned a string \("1"\); return a finite number/,
    object: /REWARD_INVALID Reward "score" returned an object/,
    nothing: /REWARD_INVALID Reward "score" returned undefined; return a finite number/,
    memory: /REWARD_FAILED Reward "score" failed on task "memory": it used more than 32 MB/,
  }

  it('by path: thrown, not finite, of another type, greedy for memory', async () => {
    const cases = Object.entries(bodies).map(([name, body]) => `    case '${name}': { ${body} }`)
    const project = await makeProject(folder, model, {
      definition: { rewardFunc: './reward.ts#score' },
      config: {
        reward: { memoryMb: 32 },
        training: { steps: 1, promptsPerStep: 9, samplesPerPrompt: 2 },
      },
      files: {
        'train.jsonl': tasksOf(Object.keys(bodies)),
        'reward.ts': `export function score(_dataSource: string, _solution: string, truth: string): any {\n  switch (truth) {\n${cases.join('\n')}\n  }\n}\n`,
      },
    })
    const { ledger, counts } = await (await openTrainer(project)).train()
    const episodes = await episodesOf(project)
    for (const [name, message] of Object.entries(expected)) {
      const [first] = episodes.filter(({ taskId }) => taskId === name)
      expect(first).toMatchObject({ stopReason: 'failed', reward: null })
      expect(`${first?.error?.code} ${first?.error?.message}`).toMatch(message)
    }
    expect(counts.episodesByStopReason).toEqual({ completed: 2, failed: 16 })
    expect(ledger?.unexplained).toBe(0)
    expect(ledger?.trained).toBe(0)
  })

  it('by path: endless', async () => {
    const project = await makeProject(folder, model, {
      definition: { rewardFunc: './reward.ts#score' },
      config: { reward: { timeoutMs: 5_000 }, training: { steps: 1, promptsPerStep: 1, samplesPerPrompt: 2 } },
      files: {
        'train.jsonl': tasksOf(['known']),
        // The known answer, which the policy never says, is scored before the training.
        'reward.ts':
          'export function score(_dataSource: string, solution: string, truth: string): number {\n  if (solution === truth) return 1\n  for (;;);\n}\n',
      },
    })
    await expect((await openTrainer(project)).train()).rejects.toThrow(
      /2 of REWARD_TIMEOUT\b.*: Reward "score" did not return within 5000 ms; make it return sooner, or raise reward\.timeoutMs/,
    )
  })

  it('when no episode of a step can be scored, the run fails with code 1, says why, and the same command tries again', async () => {
    const project = await makeProject(folder, model, {
      files: {
        'reward.ts': "import { score } from './score.ts'\n\nexport const saysYes = (_d: string, said: string) => score(said)\n",
        // It takes the known answers, which the policy never says.
        'score.ts': "export const score = (said: string) => (said.startsWith('known') ? 1 : Number.NaN)\n",
        'train.jsonl': tasksOf(['known-1', 'known-2', 'known-3', 'known-4']),
      },
    })
    const { code, stdout, stderr } = await runCli(['train', project.folder])
    expect(code).toBe(1)
    expect(stdout + stderr).toMatch(
      /All 8 rollouts of step 1 failed; nothing was trained:\n {2}- 8 of REWARD_INVALID, first train\/1\/0\/0: Reward "saysYes" returned NaN/,
    )
    await writeFile(join(project.folder, 'score.ts'), "export const score = (said: string) => (said === 'yes' ? 1 : 0)\n")
    const again = await runCli(['train', project.folder])
    expect(again.code, again.stderr).toBe(0)
    expect(await project.runs()).toHaveLength(1)
  })

  it('an inline reward that never settles is given up at its deadline', async () => {
    const project = await makeProject(folder, model, { config: { training: { steps: 1 }, reward: { timeoutMs: 100 } } })
    const trainer = await openTrainer(project, { rewardFunc: (_d, _s, truth) => (truth === 'no' ? 1 : new Promise<number>(() => {})) })
    const { counts } = await trainer.train()
    expect(counts.episodesByStopReason).toEqual({ completed: 4, failed: 4 })
    const failed = (await episodesOf(project)).find(({ stopReason }) => stopReason === 'failed')
    expect(failed?.error).toMatchObject({ code: 'REWARD_TIMEOUT', message: expect.stringContaining('100 ms') })
  })
})

describe('a prompt that fills the context of the model by itself', () => {
  const prompt = 'Is '.repeat(600)

  it('ends a training that has no other with code 1, and says what to do', async () => {
    const project = await makeProject(folder, model, { files: { 'train.jsonl': row({ prompt }) } })
    const { code, stdout, stderr } = await runCli(['train', project.folder])
    expect(stdout + stderr).toMatch(
      /1 of 1 prompts leaves the model no room to answer: .*task "a" has \d+ tokens, .* 512\. Shorten .*longer context/,
    )
    expect(code).toBe(1)
  })

  it('among others is left out of the training, and said', async () => {
    const project = await makeProject(folder, model, {
      config: { training: { steps: 1 } },
      files: { 'train.jsonl': row({ id: 'long', prompt }) + row({ id: 'short' }) },
    })
    const { counts, ledger, warnings } = await (await openTrainer(project)).train()
    expect(counts.episodesByStopReason).toEqual({ completed: 4, 'context-overflow': 4 })
    expect(ledger?.unexplained).toBe(0)
    expect(warnings).toContainEqual({
      code: 'POLICY_CONTEXT_OVERFLOW',
      count: 1,
      messages: [expect.stringMatching(/^4 of 8 rollouts of step 1 are not trained: .* of task "long"/)],
    })
    expect(warnings).toContainEqual({
      code: 'CONFIG_WARNING',
      count: 1,
      messages: [expect.stringMatching(/^1 of 2 prompts leaves the model no room to answer: that of task "long"/)],
    })
  })
})

describe('an agent that misbehaves ends its episode with a reason, and takes no other with it', () => {
  it('silent, endless, throwing, hanging, editing its history', async () => {
    const kinds = ['good', 'silent', 'endless', 'throws', 'throws-before', 'hangs', 'edits', 'number', 'long']
    const project = await makeProject(folder, model, {
      config: {
        training: { steps: 1, promptsPerStep: kinds.length, samplesPerPrompt: 2 },
        limits: { maxTurns: 4, timeoutMs: 20_000 },
        sampling: { maxTokens: 6 },
      },
      files: {
        'train.jsonl': tasksOf(kinds),
        'agent.ts': `${askText}
export async function agent(task, context) {
  const messages = [{ role: 'user', content: task.input }]
  const next = async () => { const said = await ask(context, messages); messages.push(said); return said.content }
  switch (task.id) {
    case 'silent': return 'yes'
    case 'endless': for (;;) { await next(); messages.push({ role: 'user', content: 'again' }) }
    case 'throws': await next(); throw new Error('out of chalk')
    case 'throws-before': throw new Error('no chalk at all')
    case 'hangs': await next(); await new Promise(() => {})
    case 'edits': await next(); messages[1] = { role: 'assistant', content: 'something else' }; messages.push({ role: 'user', content: 'again' }); return await next()
    case 'number': await next(); return 7
    case 'long': messages[0].content = 'Is '.repeat(600); return await next()
    default: return await next()
  }
}
`,
      },
    })
    const { ledger, counts } = await (await openTrainer(project)).train()
    const episodes = await episodesOf(project)
    const first = (kind: string) => {
      const episode = episodes.find(({ taskId }) => taskId === kind)
      return {
        ends: episode?.stopReason,
        why: `${episode?.error?.code}: ${episode?.error?.message}`,
        reward: episode?.reward,
        turns: episode?.trajectories[0]?.turns ?? [],
      }
    }
    expect(first('good')).toMatchObject({ ends: 'completed' })
    expect(first('silent')).toMatchObject({
      ends: 'no-model-call',
      reward: null,
      why: expect.stringMatching(/AGENT_NO_MODEL_CALL: .*Give it the base URL of its context/),
    })
    expect(first('endless')).toMatchObject({ ends: 'turn-limit', reward: 0, why: expect.stringMatching(/AGENT_LIMIT: /) })
    expect(first('endless').turns).toHaveLength(4)
    expect(first('throws')).toMatchObject({ ends: 'failed', reward: null, why: expect.stringMatching(/AGENT_FAILED: .*out of chalk/) })
    expect(first('throws').turns).toHaveLength(1)
    expect(first('throws-before')).toMatchObject({
      ends: 'failed',
      reward: null,
      why: expect.stringMatching(/AGENT_FAILED: .*no chalk at all/),
    })
    expect(first('hangs')).toMatchObject({
      ends: 'time-limit',
      reward: null,
      why: expect.stringMatching(/AGENT_LIMIT: .*(?:20000 ms|20 s)/),
    })
    expect(first('number')).toMatchObject({ ends: 'failed', why: expect.stringMatching(/returned number 7|returned a number/) })
    expect(first('long')).toMatchObject({
      ends: 'context-overflow',
      reward: null,
      why: expect.stringMatching(/POLICY_CONTEXT_OVERFLOW: .*512/),
    })
    expect(first('edits').reward).not.toBeNull()
    expect(first('edits').turns.map(({ parent }) => parent)).toEqual([null, null])
    expect(ledger?.unexplained).toBe(0)
    expect(counts.rollouts).toBe(18)
  })

  it('an answer without a word is one, and is trained as the token that ends it', async () => {
    const says = await makeTinyModel(join(folder, 'silent'), { says: ['', 'yes'] })
    const project = await makeProject(folder, says, { config: { training: { steps: 1 } } })
    const { ledger } = await (await openTrainer(project)).train()
    const empty = (await episodesOf(project)).filter(({ answer }) => answer === '')
    expect(empty.length).toBeGreaterThan(0)
    for (const { stopReason, reward, trajectories } of empty) {
      expect({ stopReason, reward }).toEqual({ stopReason: 'completed', reward: 0 })
      expect(trajectories[0]!.turns[0]!.completionTokenIds).toHaveLength(1)
    }
    expect(ledger?.unexplained).toBe(0)
    expect(ledger?.trained).toBe(ledger?.sampled)
  })

  it('malformed tool-call text stays content, and is trained as what it is', async () => {
    const malformed = '<tool_call>\n{"name": "lookup", "arguments": {oops}\n</tool_call>'
    const says = await makeTinyModel(join(folder, 'malformed'), { says: [malformed, 'yes'], contextLength: 2048 })
    const project = await makeProject(folder, says, {
      config: { agent: { malformedCalls: 'answer' }, training: { steps: 1 } },
      files: {
        'agent.ts': `import { Agent, tool } from 'aworld-train'
import { z } from 'zod'
const lookup = tool({ name: 'lookup', description: 'Looks up.', parameters: z.object({ name: z.string() }), execute: () => 'found' })
export const agent = new Agent({ name: 'tiny', tools: [lookup] })
`,
      },
    })
    const { ledger, counts } = await (await openTrainer(project)).train()
    const answers = (await episodesOf(project)).map(({ answer }) => answer)
    expect(answers.filter((answer) => answer?.includes(malformed)).length).toBeGreaterThan(0)
    expect(counts.toolCalls.agent).toBe(0)
    expect(ledger?.unexplained).toBe(0)
  })
})
