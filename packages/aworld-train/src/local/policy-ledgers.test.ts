import { cpSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { EvaluationReport, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeTwoModels, trainerOfTwo } from './two-policies.test-support.ts'

let folder: string
beforeEach(() => {
  folder = makeTwoModels()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** The ledgers of the policies as one. */
function total({ policies = {} }: RunReport) {
  const untrained: Record<string, number> = {}
  const sum = { sampled: 0, trained: 0, unexplained: 0, untrained }
  for (const { ledger } of Object.values(policies)) {
    for (const key of ['sampled', 'trained', 'unexplained'] as const) sum[key] += ledger[key]
    for (const [reason, tokens] of Object.entries(ledger.untrained)) untrained[reason] = (untrained[reason] ?? 0) + tokens
  }
  return sum
}

it('each policy accounts for its own tokens, and the ledger of the run is their sum', async () => {
  const report = await (await trainerOfTwo({ folder, reader: { trainable: false } })).train()
  const { lead, reader } = report.policies!
  expect(lead).toMatchObject({
    model: join(folder, 'lead'),
    checkpoint: join('checkpoints', 'step-000002', 'lead'),
    ledger: { trained: expect.any(Number), untrained: { evaluation: expect.any(Number) }, unexplained: 0 },
  })
  expect(lead!.ledger.trained).toBe(report.ledger?.trained)
  expect(lead!.ledger.trained).toBeGreaterThan(0)
  expect(reader).toMatchObject({ trainable: false, checkpoint: null, ledger: { trained: 0, unexplained: 0 } })
  expect(reader!.ledger.untrained['frozen-policy']).toBeGreaterThan(0)
  expect(Object.keys(reader!.ledger.untrained).sort()).toEqual(['evaluation', 'frozen-policy'])
  expect(report.ledger).toMatchObject(total(report))
  for (const [name, agent] of [
    ['lead', 'first'],
    ['reader', 'second'],
  ] as const)
    expect(report.agents[agent]).toMatchObject({ sampled: report.policies![name]!.ledger.sampled })
  const tokenizerIn = (...at: string[]) => readFileSync(join(...at, 'tokenizer.json'), 'utf8')
  for (const name of ['lead', 'reader']) expect(tokenizerIn(report.path, 'tokenizer', name)).toBe(tokenizerIn(folder, name))
})

it('a resumed run keeps the account of each policy', async () => {
  const stop = new AbortController()
  const onEvent = (event: { type: string; step?: number }) => {
    if (event.type === 'step-start' && event.step === 2) stop.abort()
  }
  const stopped = await (await trainerOfTwo({ folder, onEvent })).train(stop.signal)
  expect(stopped).toMatchObject({
    status: 'stopped',
    policies: { lead: { ledger: { unexplained: 0 } }, reader: { ledger: { unexplained: 0 } } },
  })
  expect(stopped.ledger).toMatchObject(total(stopped))
  const trainer = await trainerOfTwo({ folder })
  const finished = await trainer.train()
  expect(finished.path).toBe(stopped.path)
  expect(finished).toMatchObject({ status: 'finished', ledger: total(finished) })
  for (const name of ['lead', 'reader']) {
    const { ledger } = finished.policies![name]!
    expect(ledger.unexplained).toBe(0)
    expect(ledger.trained).toBeGreaterThan(stopped.policies![name]!.ledger.trained)
    expect(stopped.policies![name]!.ledger.trained).toBeGreaterThan(0)
  }
})

it('a checkpoint of several policies is evaluated with the models that its run began with', async () => {
  const reader = { trainable: false }
  const trainer = await trainerOfTwo({ folder, reader, steps: 1 })
  const { path, checkpoint } = await trainer.train()
  const trained = await trainer.inference<EvaluationReport>()
  const started = await (await trainerOfTwo({ folder, reader })).inference<EvaluationReport>()
  // The configuration names another model by then.
  cpSync(join(folder, 'reader'), join(folder, 'other'), { recursive: true })
  const later = await trainerOfTwo({ folder, reader: { ...reader, path: './other' }, checkpoint: join(path, checkpoint!) })
  const report = await later.inference<EvaluationReport>()
  expect(report).toMatchObject({
    model: null,
    policies: {
      lead: { model: join(folder, 'lead'), checkpoint: join(path, checkpoint!, 'lead') },
      reader: { model: join(folder, 'reader'), checkpoint: null },
    },
  })
  const completionsOf = (each: EvaluationReport) => {
    const run = readRun(each.path)
    try {
      return [...run.episodes({})].flatMap(({ trajectories }) => trajectories.map(({ turns }) => [...turns[0]!.completionTokenIds]))
    } finally {
      run.close()
    }
  }
  expect(completionsOf(report)).toEqual(completionsOf(trained))
  expect(completionsOf(report)).not.toEqual(completionsOf(started))
  // A name that saveModel takes.
  const saved = join(path, 'checkpoints/rounds/1')
  cpSync(join(path, checkpoint!), saved, { recursive: true })
  const named = await (
    await trainerOfTwo({ folder, reader: { ...reader, path: './other' }, checkpoint: saved })
  ).inference<EvaluationReport>()
  expect(named.policies!['reader']!.model).toBe(join(folder, 'reader'))
})

it('an evaluation without a model says which policy has none', async () => {
  const trainer = await trainerOfTwo({ folder, reader: { path: null, warmUp: './warm-up.ts#warmUp' } })
  await expect(trainer.inference()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/or set policies\.reader\.path\.$/),
  })
})
