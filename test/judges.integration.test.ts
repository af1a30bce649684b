import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import type { Episode } from '@aworld-train/core'
import { defineReward, type RewardSource, rankReward, rubricReward } from '@aworld-train/training'
import { runOnce } from 'aworld-train/vitest'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from './support/run-cli.ts'
import { startJudge, type Verdict } from './support/scripted-judge.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { episodesOf, makeProject, openTrainer, type ProjectChanges } from './support/tiny-project.ts'

let folder: string
let model: string
beforeAll(async () => {
  process.env['JUDGE_KEY'] = 'judge-secret'
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-judges-'))
  model = await makeTinyModel(join(folder, 'model'))
})
afterAll(async () => {
  delete process.env['JUDGE_KEY']
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

/** Asks the judge by `fetch`. */
const ask = `async function ask({ baseUrl, apiKey, model }, content, signal) {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content }] })
  const answer = await fetch(baseUrl + '/chat/completions', { method: 'POST', body, signal, headers: { authorization: 'Bearer ' + apiKey } })
  if (!answer.ok) throw new Error(answer.status + ' ' + (await answer.text()))
  return (await answer.json()).choices[0].message.content
}
`
const inModule = `import { defineReward } from 'aworld-train'
${ask}
export const rich = defineReward(async ({ episode }, { model, signal }) => Number(await ask(model('judge'), episode.answer, signal)))
export const positional = async (source, solution, truth, extra, { model, signal }) => Number(await ask(model('judge'), solution, signal))
export const misspelt = defineReward((_, { model }) => model('judeg').baseUrl.length)
`
const inPython = `import json
import urllib.request

def ask(judge, content):
    body = json.dumps({"model": judge.model, "messages": [{"role": "user", "content": content}]}).encode()
    headers = {"authorization": f"Bearer {judge.api_key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{judge.base_url}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

def by_name(data_source, solution_str, ground_truth, extra_info=None, *, model):
    return float(ask(model("judge"), solution_str))

def by_position(source, text, truth, extra, model):
    return float(ask(model("judge"), text))

def misspelt(data_source, solution_str, ground_truth, extra_info=None, *, model):
    return len(model("judeg").base_url)
`
const files = { 'reward.js': inModule, 'reward.py': inPython }

async function askInline(endpoint: { baseUrl: string; apiKey: string; model: string }, content: string): Promise<string> {
  const body = JSON.stringify({ model: endpoint.model, messages: [{ role: 'user', content }] })
  const headers = { authorization: `Bearer ${endpoint.apiKey}` }
  const answer = await fetch(`${endpoint.baseUrl}/chat/completions`, { method: 'POST', body, headers })
  if (!answer.ok) throw new Error(`${answer.status}`)
  return ((await answer.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
}

const inline = defineReward(async ({ episode }, { model }) => Number(await askInline(model('judge'), episode.answer ?? '')))

interface Scoring extends ProjectChanges {
  readonly reward: RewardSource
  readonly verdict: Verdict
  readonly answer?: string
  readonly settings?: object
}

/** One rollout whose policy says 'yes', scored by a judge. */
async function score({ reward, verdict, answer = 'yes', settings = {}, ...changes }: Scoring) {
  const judge = await startJudge(verdict)
  try {
    const project = await makeProject(folder, model, { files, ...changes })
    const config = { model: { path: model }, models: { judge: judge.settings }, reward: settings }
    const training = { agent: './agent.ts#agent', rewardFunc: reward, config, baseDirectory: project.folder }
    const episode = await runOnce(training, { task: { id: 't', prompt: 'Is 10 even?', answer: 'yes' }, script: [answer] })
    return { episode, questions: judge.questions }
  } finally {
    await judge.close()
  }
}

const costOf = ({ trajectories }: Pick<Episode, 'trajectories'>) =>
  trajectories.flatMap(({ turns }) => turns).reduce((sum, { cost = 0 }) => sum + cost, 0)

describe('a reward that asks a frozen model', () => {
  it.each<[string, RewardSource]>([
    ['a function of the program', inline],
    ['a module of TypeScript', './reward.js#rich'],
    ['its positional form', './reward.js#positional'],
    ['a function of Python by name', './reward.py#by_name'],
    ['a function of Python by position', './reward.py#by_position'],
  ])('%s: the call is kept beside the episode, with its cost, and apart from what the agent did', async (_, reward) => {
    const { episode, questions } = await score({ reward, verdict: () => '0.75' })
    expect(episode).toMatchObject({ reward: 0.75, stopReason: 'completed' })
    expect(questions).toEqual(['yes'])
    expect(episode.trajectories.map(({ agent }) => agent)).toEqual(['tiny'])
    expect(costOf(episode)).toBe(0)
    const [judged] = episode.rewardTrajectories!
    expect(judged).toMatchObject({ id: 'reward:judge', agent: 'reward:judge', trainable: false, policy: 'judge' })
    expect(judged!.turns).toMatchObject([{ cost: 0.0015, message: { content: '0.75' }, messagesDelta: [{ content: 'yes' }] }])
    expect(JSON.stringify(episode)).not.toContain('judge-secret')
  })

  it('is good for the clients of OpenAI and Anthropic', async () => {
    const byClients = defineReward(async (_, { model, signal }) => {
      const { baseUrl: baseURL, apiKey, model: name } = model('judge')
      const messages = [{ role: 'user' as const, content: 'How good?' }]
      const openai = await new OpenAI({ baseURL, apiKey }).chat.completions.create({ model: name, messages }, { signal })
      const anthropic = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ''), apiKey })
      const [block] = (await anthropic.messages.create({ model: name, max_tokens: 9, messages }, { signal })).content
      return Number(openai.choices[0]!.message.content) + Number(block?.type === 'text' ? block.text : Number.NaN)
    })
    const { episode } = await score({ reward: byClients, verdict: () => '0.25' })
    expect(episode).toMatchObject({ reward: 0.5, rewardTrajectories: [{ turns: [{ index: 0 }, { index: 1 }] }] })
  })

  it.each(['./reward.js#misspelt', './reward.py#misspelt'])('%s: a model that the training does not have is named', async (reward) => {
    const { episode } = await score({ reward, verdict: () => '1' })
    expect(episode).toMatchObject({ stopReason: 'failed', reward: null, error: { code: 'CONFIG_INVALID' } })
    expect(episode.error!.message).toContain(
      'The reward asks for the frozen model "judeg", and there are "judge". Did you mean "judge"? Correct the name, or add models.judeg',
    )
  })

  it('is asked once more where it fails, and both calls are kept', async () => {
    const { episode, questions } = await score({ reward: inline, verdict: (_, call) => (call === 0 ? 'I would say half.' : '0.5') })
    expect(episode.reward).toBe(0.5)
    expect(questions).toHaveLength(2)
    expect(episode.rewardTrajectories![0]!.turns.map(({ index, message }) => [index, message.content])).toEqual([
      [0, 'I would say half.'],
      [1, '0.5'],
    ])
  })

  it('fails with the reason after that, and never scores 0', async () => {
    const { episode, questions } = await score({ reward: inline, verdict: () => 'I would say half.' })
    expect(episode).toMatchObject({ stopReason: 'failed', reward: null, error: { code: 'REWARD_INVALID', boundary: 'reward' } })
    expect(questions).toHaveLength(2)
    expect(episode.rewardTrajectories![0]!.turns).toHaveLength(2)
  })

  it('a judge that refuses fails the scoring, though the reward makes a 0 of it', async () => {
    const lenient = defineReward(async (_, { model }) => Number(await askInline(model('judge'), 'x').catch(() => 0)))
    const { episode } = await score({ reward: lenient, verdict: () => 400 })
    expect(episode).toMatchObject({ stopReason: 'failed', reward: null, error: { code: 'FROZEN_MODEL_FAILED' } })
    const again = await score({ reward: lenient, verdict: (_, call) => (call === 0 ? 400 : '1') })
    expect(again.episode.reward).toBe(1)
  })

  it('ends at reward.maxCost, which is apart from the cost of the rollout', async () => {
    const thrice = defineReward(async (_, { model }) => {
      for (let call = 0; call < 3; call++) await askInline(model('judge'), `${call}`)
      return 1
    })
    const { episode, questions } = await score({ reward: thrice, verdict: () => '1', settings: { maxCost: 0.002 } })
    expect(episode).toMatchObject({
      stopReason: 'failed',
      error: { code: 'AGENT_LIMIT', message: expect.stringContaining('reward.maxCost') },
    })
    expect(questions).toHaveLength(2)
  })

  it('a reward that throws on a third, abstains or is a string asks nobody again', async () => {
    const outcomes = new Map<string, unknown>()
    const rewards: Readonly<Record<string, () => number | null>> = {
      throws: () => {
        throw new Error('no')
      },
      abstains: () => null,
      text: () => '1' as never,
    }
    for (const [name, reward] of Object.entries(rewards)) {
      const { episode, questions } = await score({ reward, verdict: () => '1' })
      outcomes.set(name, [episode.stopReason, episode.reward, episode.error?.code, questions.length])
    }
    expect(Object.fromEntries(outcomes)).toEqual({
      throws: ['failed', null, 'REWARD_FAILED', 0],
      abstains: ['completed', null, undefined, 0],
      text: ['failed', null, 'REWARD_INVALID', 0],
    })
  })
})

describe('a training with a judge', () => {
  const modeOf = (mode: 'record' | 'replay') => ({ mode, cassette: './judge.jsonl' })
  const verdict: Verdict = (question) => (question === 'yes' ? '1' : '0')

  const curveOf = async (project: Awaited<ReturnType<typeof makeProject>>) =>
    (await episodesOf(project)).map(({ rollout, answer, reward }) => `${rollout.replace(/^[^/]*/, '')} ${answer} ${reward}`).sort()

  it('repeats from its recording without judge and key; no file has the key', async () => {
    const judge = await startJudge(verdict)
    const project = await makeProject(folder, model, { files })
    const train = async (mode: 'record' | 'replay') => {
      const trainer = await openTrainer(project, {
        rewardFunc: './reward.js#rich',
        seed: 7,
        config: {
          model: { path: model },
          engine: { threads: 1 },
          training: { steps: 2, promptsPerStep: 2, samplesPerPrompt: 4 },
          sampling: { maxTokens: 6 },
          models: { judge: { ...judge.settings, ...modeOf(mode) } },
        },
        ...(mode === 'replay' && { fresh: true }),
      })
      const report = await trainer.train()
      return { curve: report.curve.map(({ reward }) => reward), episodes: await curveOf(project), frozen: report.tokenReport?.frozen }
    }
    const recorded = await train('record')
    const calls = judge.questions.length
    expect(calls).toBeGreaterThan(2)
    expect(recorded.frozen?.['reward:judge']).toMatchObject({ calls, cost: expect.closeTo(0.0015 * calls, 6) })
    const [run] = await project.runs()
    const key = (await episodesOf(project)).find(({ rewardTrajectories }) => rewardTrajectories)?.rollout
    const shown = await runCli(['replay', run!, key!], { cwd: project.folder })
    expect(shown.stdout).toMatch(/reward:judge {2}1 turn, \$0\.0015/)
    await judge.close()
    delete process.env['JUDGE_KEY']
    const replayed = await train('replay')
    process.env['JUDGE_KEY'] = 'judge-secret'
    expect(replayed).toEqual(recorded)
    for (const file of await readdir(project.folder, { recursive: true })) {
      if (file.startsWith('node_modules') || !(await stat(join(project.folder, file))).isFile()) continue
      expect((await readFile(join(project.folder, file))).includes('judge-secret'), file).toBe(false)
    }
  }, 120_000)

  it('ranks each group once, also where the run is stopped before the step that trains it', async () => {
    const judge = await startJudge((question) => {
      const { candidates } = JSON.parse(question) as { candidates: { id: string; answer: string }[] }
      return JSON.stringify({ scores: Object.fromEntries(candidates.map(({ id, answer }) => [id, answer === 'yes' ? 0.9 : 0.1])) })
    })
    const training = { steps: 2, promptsPerStep: 2, samplesPerPrompt: 4 }
    const config = {
      model: { path: model },
      engine: { threads: 1 },
      training,
      sampling: { maxTokens: 6 },
      models: { judge: judge.settings },
    }
    const options = { rewardFunc: rankReward({ judge: 'judge' }), seed: 7, config }
    const train = async (stopAfterGroups: number) => {
      const project = await makeProject(folder, model)
      const asked = judge.questions.length
      let groups = 0
      const stop = new AbortController()
      const onEvent = ({ type }: { type: string }) => {
        if (type === 'group-end' && ++groups === stopAfterGroups) stop.abort()
      }
      if (stopAfterGroups > 0)
        await expect((await openTrainer(project, { ...options, onEvent })).train(stop.signal)).resolves.toMatchObject({ status: 'stopped' })
      const { status, curve, ledger } = await (await openTrainer(project, options)).train()
      const episodes = (await episodesOf(project)).filter(({ split }) => split === 'train')
      const rewards = episodes.map(({ rollout, reward }) => `${rollout} ${reward}`).sort()
      const [first] = episodes.filter(({ rewardTrajectories }) => rewardTrajectories)
      expect(first?.rewardTrajectories).toMatchObject([{ agent: 'reward:judge', turns: [{ cost: 0.0015 }] }])
      expect(first).toMatchObject({ groupScored: true })
      return {
        status,
        curve: curve.map(({ reward }) => reward),
        unexplained: ledger?.unexplained,
        rewards,
        asked: judge.questions.length - asked,
      }
    }
    const undisturbed = await train(0)
    expect(undisturbed).toMatchObject({ status: 'finished', unexplained: 0 })
    expect(undisturbed.asked).toBeGreaterThan(0)
    expect(await train(2)).toEqual(undisturbed)
    await judge.close()
  }, 120_000)

  it('learns from a rubric and from ranks what the exact reward teaches', async () => {
    const judge = await startJudge((question) => {
      const { answer, candidates } = JSON.parse(question) as { answer: string; candidates?: { id: string; answer: string }[] }
      const scores = candidates
        ? Object.fromEntries(candidates.map((each) => [each.id, each.answer === 'yes' ? 0.9 : 0.2]))
        : { affirms: answer === 'yes' ? 9 : 1, brief: 8 }
      return JSON.stringify({ scores })
    })
    const learn = async (rewardFunc: RewardSource) => {
      const project = await makeProject(folder, model)
      const training = { steps: 12, promptsPerStep: 4, samplesPerPrompt: 8, learningRate: 1e-2, warmupSteps: 1 }
      const config = {
        model: { path: model },
        engine: { threads: 1 },
        training,
        sampling: { maxTokens: 6 },
        models: { judge: judge.settings },
      }
      await (await openTrainer(project, { rewardFunc, seed: 7, config })).train()
      const episodes = (await episodesOf(project)).filter(({ rollout }) => /^train\/1[12]\//.test(rollout))
      return episodes.filter(({ answer }) => answer === 'yes').length / episodes.length
    }
    const learned = {
      exact: await learn((_source, answer) => (answer === 'yes' ? 1 : 0)),
      rubric: await learn(rubricReward({ judge: 'judge', criteria: { affirms: 'It says yes.', brief: 'It says nothing else.' } })),
      ranks: await learn(rankReward({ judge: 'judge', rubric: 'Yes is better than no.' })),
    }
    await judge.close()
    for (const [name, share] of Object.entries(learned)) expect(share, `${name} of ${JSON.stringify(learned)}`).toBeGreaterThan(0.9)
  }, 120_000)
})
