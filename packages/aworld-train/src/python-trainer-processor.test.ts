import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import { type RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Agent, AgentTrainer, AworldAgentLoop, Swarm } from './index.ts'
import type { PythonTrainerProcessor } from './python-trainer-processor.ts'
import { writeScriptedPython } from './testing/scripted-python.ts'

let directory: string
let faults: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'awt-verl-'))
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  const scripted = await writeScriptedPython(directory)
  faults = scripted.faults
  vi.stubEnv('AWORLD_TRAIN_PYTHON', scripted.python)
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true, force: true })
})

const rows = (split: string) =>
  Array.from({ length: 4 }, (_, index) => ({
    id: `${split}-${index}`,
    prompt: `Is ${index} a number?`,
    answer: 'yes',
    data_source: 'numbers',
  }))

function trainer(options: object = {}, config: object = {}) {
  const events: RunEvent[] = []
  const made = new AgentTrainer({
    agent: new Agent({ name: 'answerer', systemPrompt: 'Say yes or no.' }),
    trainDataset: rows('train'),
    testDataset: rows('test'),
    rewardFunc: (_source: string, solution: string, truth: unknown) => (solution === truth ? 1 : 0),
    baseDirectory: directory,
    runPath: relative('.', join(directory, 'runs')),
    config: {
      training: { steps: 3, promptsPerStep: 2, samplesPerPrompt: 2, checkpointEvery: 1, evaluateEvery: 3 },
      data: { max_prompt_length: 128, max_response_length: 64 },
      actor_rollout_ref: { model: { path: './model' } },
      smoke: true,
      ...config,
    },
    onEvent: (event: RunEvent) => events.push(event),
    ...options,
  })
  return { made, events }
}

const runOf = () => join(directory, 'runs', readdirSync(join(directory, 'runs'))[0] as string)

describe('a training with verl', () => {
  it('is what a trainer without a name is', () => {
    expect(trainer().made.trainEngineName).toBe('verl')
  })

  it.each([
    ['last', 1],
    [{ role: 'asker' }, 0],
  ])('trains the rows %j of a swarm, and warns of what nobody asked to be left out', async (selection, warned) => {
    const agent = new Swarm(
      new Agent({ name: 'asker', systemPrompt: 'Ask.' }),
      new Agent({ name: 'answerer', systemPrompt: 'Say yes or no.' }),
    )
    const { made, events } = trainer({ agent }, { rows: selection })
    const { ledger } = await made.train()
    expect(ledger).toMatchObject({ untrained: { 'unselected-by-trainer': expect.any(Number) }, unexplained: 0 })
    const warnings = events.filter((event) => event.type === 'warning-raised' && event.message.includes('2 agents are trained'))
    expect(warnings).toHaveLength(warned)
  })

  it('serves rollouts, follows the trainer, and accounts for every token', async () => {
    const { made, events } = trainer()
    const report = await made.train()
    expect(RunReport.parse(report)).toEqual(report)
    expect(report).toMatchObject({
      status: 'finished',
      before: { reward: 0, rollouts: 4, step: 0 },
      after: { reward: 1, rollouts: 4, step: 3, failed: 0 },
      checkpoints: ['checkpoints/global_step_1', 'checkpoints/global_step_2', 'checkpoints/global_step_3'],
      counts: { rollouts: 20, episodesByStopReason: { completed: 20 }, modelCalls: { agent: 20, gateway: 20, engine: 20 } },
    })
    expect(report.curve.map(({ step, reward }) => [step, reward])).toEqual([
      [1, 0],
      [2, 1],
      [3, 1],
    ])
    // "no" and "yes" with their stop token: 3 and 4 tokens.
    expect(report.ledger).toEqual({
      version: 1,
      sampled: 4 * 3 + 4 * 3 + 8 * 4 + 4 * 4,
      trained: 4 * 3 + 8 * 4,
      untrained: { evaluation: 4 * 3 + 4 * 4 },
      unexplained: 0,
      withVariance: { sampled: 0, trained: 0 },
    })
    expect(Object.keys(report.times.phasesMs).sort()).toEqual([
      'checkpoint',
      'other',
      'rollout',
      'start',
      'update',
      'validation',
      'weight-sync',
    ])
    expect(events[0]).toMatchObject({ type: 'phase-progress', phase: 'check verl: its Python, and the configuration' })
    const types = events.map(({ type }) => type).filter((type) => !type.startsWith('rollout') && type !== 'phase-progress')
    expect(types.slice(0, 1)).toEqual(['run-start'])
    expect(events.find(({ type }) => type === 'run-start')).toMatchObject({ details: { agent: 'answerer trained' } })
    expect(types.at(-1)).toBe('run-end')
    expect(types.filter((type) => type === 'step-end')).toHaveLength(3)
    const path = runOf()
    expect(readdirSync(path)).toEqual(
      expect.arrayContaining([
        'agent.yaml',
        'final_trainer.yaml',
        'ledger.json',
        'report.json',
        'run.sh',
        'train_data.parquet',
        'test_data.parquet',
        'verl.log',
      ]),
    )
    expect(existsSync(join(path, 'channel.token'))).toBe(false)
    const run = readRun(path)
    const health = run.health(0).samples
    run.close()
    expect(health[0]).toMatchObject({ engines: { model: { ready: false } }, channel: { workers: 0, open: 0, rejected: 0 } })
    expect(health.at(-1)).toMatchObject({ queued: 0, running: 0, retries: 0, engines: { model: { weightVersion: 3 } } })
    expect(readFileSync(join(path, 'manifest.json'), 'utf8')).toContain('"status": "finished"')
  })

  it('makes its starting model first where a warm-up is named, and has no result before where none was asked for', async () => {
    const source = JSON.stringify(join(directory, 'model'))
    writeFileSync(
      join(directory, 'warm-up.ts'),
      `import { cp } from 'node:fs/promises'\nexport const make = ({ directory }) => cp(${source}, directory, { recursive: true })\n`,
    )
    const { made } = trainer({}, { model: { warmUp: './warm-up.ts#make' }, actor_rollout_ref: {}, evaluation: { before: false } })
    const report = await made.train()
    expect(report).toMatchObject({ status: 'finished', before: null, after: { reward: 1, step: 3 } })
    expect(existsSync(join(runOf(), 'model', 'config.json'))).toBe(true)
    expect(report.times.phasesMs).toHaveProperty('warm-up')
  })

  it('takes one reward that two spellings of its path name', async () => {
    writeFileSync(join(directory, 'reward.ts'), 'export const score = () => 1\n')
    const { made } = trainer({ rewardFunc: './reward.ts#score' }, { reward: { path: 'reward.ts', name: 'score' } })
    await made.validate()
    const other = trainer({ rewardFunc: './reward.ts#other' }, { reward: { path: 'reward.ts', name: 'score' } }).made
    await expect(other.validate()).rejects.toThrow(/other/)
  })

  it('goes on from the checkpoint after the trainer was killed, and counts nothing twice', async () => {
    writeFileSync(faults, '{"killInStep": 2}')
    await expect(trainer().made.train()).rejects.toMatchObject({ code: 'TRAINER_PROCESS_DIED' })
    const failed = JSON.parse(readFileSync(join(runOf(), 'report.json'), 'utf8')) as RunReport
    const again = trainer()
    const report = await again.made.train()
    expect(report.counts.modelCalls.agent).toBe(report.counts.rollouts)
    expect(report.counts.modelCalls.gateway).toBeGreaterThan(failed.counts.modelCalls.gateway)
    expect(report.counts.modelCalls.gateway).toBeGreaterThanOrEqual(report.counts.modelCalls.agent)
    expect(report.times.wallMs).toBeGreaterThan(failed.times.wallMs)
    for (const [phase, ms] of Object.entries(failed.times.phasesMs)) expect(report.times.phasesMs[phase]).toBeGreaterThan(ms)
    expect(again.events.find(({ type }) => type === 'run-start')).toMatchObject({ type: 'run-start', resumedFromStep: 1 })
    expect(report.status).toBe('finished')
    expect(report.curve.map(({ step }) => step)).toEqual([1, 2, 3])
    expect(report.ledger).toMatchObject({ unexplained: 0, untrained: { 'superseded-attempt': 16 } })
    const { superseded, trainedTwice, incarnations } = JSON.parse(readFileSync(join(runOf(), 'ledger.json'), 'utf8'))
    expect(superseded).toMatchObject([{ tokens: 16 }])
    expect(trainedTwice).toEqual([])
    expect(incarnations).toMatchObject([{ resumedFromStep: 0 }, { resumedFromStep: 1 }])
    expect(readdirSync(join(directory, 'runs'))).toHaveLength(1)
  })

  it('says that the policy has collapsed while the run goes on, and which checkpoint was the best', async () => {
    writeFileSync(faults, '{"forgetInStep": 6}')
    const training = { steps: 14, promptsPerStep: 2, samplesPerPrompt: 2, checkpointEvery: 4, evaluateEvery: 14 }
    const { made, events } = trainer({}, { training })
    const { warnings } = await made.train()
    const collapsed = events.findIndex((event) => event.type === 'warning-raised' && event.code === 'POLICY_COLLAPSED')
    expect(events.slice(collapsed).filter(({ type }) => type === 'step-end').length).toBeGreaterThan(0)
    expect(warnings.filter(({ code }) => code === 'POLICY_COLLAPSED')).toEqual([
      {
        code: 'POLICY_COLLAPSED',
        count: 1,
        messages: [expect.stringMatching(/from 1 in steps 2 to 4 to 0\. The best checkpoint is .*global_step_4\. Stop, /)],
      },
    ])
  })

  it('ends a trainer that says nothing for as long as the watchdog waits', async () => {
    writeFileSync(faults, '{"hang": true}')
    const { made } = trainer({}, { smoke: true, watchdogTimeoutMs: 1_000, rolloutTimeoutMs: 900 })
    await expect(made.train()).rejects.toMatchObject({
      code: 'TRAINER_PROCESS_DIED',
      message: expect.stringMatching(/no rollout has moved for 1 seconds.*raise watchdogTimeoutMs/),
    })
  })

  it('stops when it is told to, and says so', async () => {
    writeFileSync(faults, '{"hang": true}')
    const controller = new AbortController()
    const { made, events } = trainer({ onEvent: undefined })
    const running = made.train(controller.signal)
    await expect
      .poll(() => existsSync(join(directory, 'runs')) && existsSync(join(runOf(), 'channel.token')), { timeout: 120_000 })
      .toBe(true)
    expect(statSync(join(runOf(), 'channel.token')).mode & 0o777).toBe(0o600)
    await expect
      .poll(() => existsSync(join(runOf(), 'verl.log')) && readFileSync(join(runOf(), 'verl.log'), 'utf8').includes('dataloader'), {
        timeout: 120_000,
      })
      .toBe(true)
    controller.abort(new Error('stop'))
    expect(await running).toMatchObject({ status: 'stopped', before: null, after: null, curve: [] })
    expect(events).toEqual([])
  })
})

describe('what stands against a training with verl', () => {
  it('is said all at once, and nothing is written', async () => {
    vi.stubEnv('AWORLD_TRAIN_PYTHON', join(directory, 'nowhere'))
    const { made } = trainer({ rewardFunc: undefined, trainDataset: undefined }, { actor_rollout_ref: { model: { path: './absent' } } })
    const error = await made.train().then(
      () => new Error('trained'),
      (each: unknown) => each as Error,
    )
    expect(error.message).toContain('There is no training data')
    expect(error.message).toContain('There is no reward')
    expect(error.message).toMatch(/The model folder .*absent is not there/)
    expect(error.message).toMatch(/nowhere cannot be used as Python/)
    expect(error.message).toContain("Or set trainEngineName: 'local'")
    expect(existsSync(join(directory, 'runs'))).toBe(false)
  })

  it.each<[string, RegExp, object, object?]>([
    [
      'a micro batch that does not divide',
      /ppo_micro_batch_size_per_gpu/,
      {},
      { actor_rollout_ref: { model: { path: './model' }, actor: { ppo_micro_batch_size_per_gpu: 3 } } },
    ],
    [
      'a data file that is a number',
      /data\.train_files names 5, which is no path/,
      { trainDataset: undefined },
      { actor_rollout_ref: { model: { path: './model' } }, data: { train_files: ['./a.parquet', 5] } },
    ],
    [
      'a prompt longer than the longest that gives a row',
      /1 of \d+ prompts have more tokens than data\.max_prompt_length, which is 128: that of task "long" has \d{3}\. .*Raise it/,
      { trainDataset: [...rows('train'), { id: 'long', prompt: 'Is 1 a number? '.repeat(20), answer: 'yes' }] },
    ],
    ['rows without a prompt', /prompt/, { trainDataset: [{ id: 'a', answer: 'x' }] }],
    ['a reward file without the name', /early_letters/, { rewardFunc: './reward.ts#early_letters' }],
    [
      'an agent loop that builds nothing',
      /no agent|undefined|Agent or a Swarm/,
      {
        agent: class extends AworldAgentLoop {
          buildAgents = () => undefined as never
        },
      },
    ],
    ['a model without a template', /has no chat_template|chat template/, {}, { actor_rollout_ref: { model: { path: './plain' } } }],
  ])('%s is refused before anything is started', async (_, message, options, config = {}) => {
    writeFileSync(join(directory, 'reward.ts'), 'export const other = () => 1\n')
    cpSync(join(directory, 'model'), join(directory, 'plain'), { recursive: true })
    rmSync(join(directory, 'plain', 'chat_template.jinja'), { force: true })
    const tokenizer = join(directory, 'plain', 'tokenizer_config.json')
    const { chat_template: _template, ...rest } = JSON.parse(readFileSync(tokenizer, 'utf8')) as Record<string, unknown>
    writeFileSync(tokenizer, JSON.stringify(rest))
    await expect(trainer(options, config).made.train()).rejects.toThrow(message)
    expect(existsSync(join(directory, 'runs'))).toBe(false)
  })

  it('is a machine without the GPUs that it needs, unless a cluster trains', async () => {
    const options = { config: { ...(trainer().made.config as object), smoke: false, trainer: { n_gpus_per_node: 1000 } } }
    // The missing part depends on the machine of this test.
    const missing = /this machine has no GPU.*set smoke to true|n_gpus_per_node is 1000 and this machine has/
    await expect(trainer(options).made.train()).rejects.toMatchObject({
      code: 'TRAINER_ENVIRONMENT',
      message: expect.stringMatching(missing),
    })
    expect(existsSync(join(directory, 'runs'))).toBe(false)
    const { lacks, files } = await trainer(options).made.dryRun()
    expect([lacks, files]).toEqual([expect.arrayContaining([expect.stringMatching(missing)]), expect.arrayContaining(['run.sh'])])
    expect((await trainer().made.dryRun()).lacks).toEqual([])
    vi.stubEnv('RAY_ADDRESS', '10.0.0.1:6379')
    expect((await trainer(options).made.dryRun()).lacks).toEqual([])
  })

  it('includes a dead tool server, and nothing is written', async () => {
    const mcpConfig = { mcpServers: { desk: { command: 'node', args: ['-e', 'process.exit(3)'] } } }
    const { made } = trainer({ agent: new Agent({ name: 'answerer', mcpConfig }) })
    await expect(made.train()).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringMatching(/"desk".*exited with code 3/),
    })
    expect(existsSync(join(directory, 'runs'))).toBe(false)
  })

  it('is no group of one: ours is refused, one that verl would train on raw rewards is warned of', async () => {
    const training = { steps: 1, promptsPerStep: 2 }
    const ours = trainer({}, { training: { ...training, samplesPerPrompt: 1 } }).made
    await expect(ours.validate()).rejects.toThrow(/training\.samplesPerPrompt is 1, and grpo compares/)
    const theirs = trainer({}, { training, actor_rollout_ref: { model: { path: './model' }, rollout: { n: 1 } } }).made
    await theirs.validate()
    expect((theirs.trainProcessor as PythonTrainerProcessor).plan?.notes.join('\n')).toMatch(/rollout\.n is 1 with grpo: a group of one/)
  })

  it('is no prompt that verl leaves out by itself, which is said', async () => {
    const trainDataset = [...rows('train'), { id: 'long', prompt: 'Is 1 a number? '.repeat(20), answer: 'yes' }]
    const { made } = trainer({ trainDataset }, { data: { max_prompt_length: 128, max_response_length: 64, filter_overlong_prompts: true } })
    await made.validate()
    expect((made.trainProcessor as PythonTrainerProcessor).plan?.findings.warnings.join('\n')).toMatch(
      /1 of \d+ prompts .* verl leaves them out\./,
    )
  })

  it('is no lack of verl, which a check says and a training does not begin without', async () => {
    vi.stubEnv('AWORLD_TRAIN_PYTHON', join(directory, 'nowhere'))
    const { made, events } = trainer()
    await made.validate()
    const message = expect.stringMatching(
      /^Not checked, because no verl was found: .*doctor --engine verl" says where it was looked for\.$/,
    )
    expect(JSON.stringify(events)).not.toContain('nowhere')
    expect(events).toContainEqual(expect.objectContaining({ type: 'warning-raised', code: 'CONFIG_WARNING', message }))
    await expect(made.train()).rejects.toMatchObject({
      code: 'TRAINER_ENVIRONMENT',
      message: expect.stringMatching('nowhere cannot be used as Python'),
    })
    expect(existsSync(join(directory, 'runs'))).toBe(false)
  })

  it('is all rows of a rollout where one is trained, with the trainers that take them', async () => {
    const config = { model: { path: './model' }, rows: 'all' }
    const { made } = trainer({ trainEngineName: 'trl', config })
    await expect(made.validate()).rejects.toThrow('set it to last or longest, or trainEngineName to local or tinker or verl.')
  })

  it('is the row of an agent that the program does not have', async () => {
    const agent = new Swarm(new Agent({ name: 'planner' }), new Agent({ name: 'writer' }))
    const config = { model: { path: './model' }, rows: { role: 'planer' } }
    await expect(trainer({ trainEngineName: 'trl', agent, config }).made.validate()).rejects.toThrow(
      'rows.role is "planer", which is no agent of the program; the trained agents are "planner", "writer". Did you mean "planner"?',
    )
  })

  it('is one for each fault: a faulty section is missing nothing', async () => {
    const faulty = { training: { learningRate: 'fast' }, model: { path: './model' }, data: {}, actor_rollout_ref: {} }
    const messagesOf = async (options: object, config: object) =>
      await trainer(options, config)
        .made.validate()
        .then(
          () => [],
          (error: Error) => error.message.split('\n').toSorted(),
        )
    const misspelt = { model: { pathh: './model' }, data: { trainFile: './a.jsonl' }, reward: { unfinishd: 'zero' } }
    for (const [trainEngineName, config] of Object.entries({ verl: { ...misspelt, reward: { timeoutMss: 1 } }, local: misspelt })) {
      expect(await messagesOf({ trainEngineName }, faulty)).toEqual([expect.stringMatching('"training.learningRate" is "fast"')])
      const nothing = { trainEngineName, trainDataset: undefined, testDataset: undefined, rewardFunc: undefined }
      expect(await messagesOf({ ...nothing, config }, {})).toEqual([
        expect.stringMatching(/"data.trainFile" is no key.*"trainFiles"/),
        expect.stringMatching(/"model.pathh" is no key.*"path"/),
        expect.stringMatching(/"reward.(unfinishd|timeoutMss)" is no key/),
      ])
    }
  })

  it('is a launch script as the configuration, which neither validate nor train runs', async () => {
    writeFileSync(join(directory, 'run.sh'), 'touch "$(dirname "$0")/made"\npython3 -m verl.trainer.main_ppo trainer.nnodes=1\n')
    for (const call of ['validate', 'train'] as const)
      await expect(trainer({ config: './run.sh' }).made[call]()).rejects.toMatchObject({
        message: expect.stringMatching(/this is a script.*bash -c .*overrides\.txt/s),
      })
    expect([existsSync(join(directory, 'made')), existsSync(join(directory, 'runs'))]).toEqual([false, false])
  })

  it('includes what verl would refuse later', async () => {
    const { made } = trainer({}, { actor_rollout_ref: { model: { path: './model' }, rolout: { n: 2 } } })
    await expect(made.validate()).rejects.toThrow(/rolout/)
  })

  it('is no reward where verl scores, which this side then does not', async () => {
    const { made } = trainer({ rewardFunc: undefined }, { smoke: true, reward: { native: true } })
    await made.validate()
    expect(await (made.trainProcessor as PythonTrainerProcessor).plan?.createReward()).toBeNull()
  })
})
