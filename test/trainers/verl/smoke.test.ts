import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bridgeDirectory } from '@aworld-train/trainers/shared'
import { expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { runCli } from '../../support/run-cli.ts'

interface Check {
  readonly name: string
  readonly ok: boolean
  readonly message: string
}

/** `doctor --engine verl --smoke` in a folder of its own, with what it left among temporary files. */
async function smoke(extra: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-doctor-'))
  try {
    const temporary = await mkdtemp(join(folder, 'tmp-'))
    const env = { AWORLD_TRAIN_PYTHON: await verlEnvironment(), TMPDIR: temporary, ...extra }
    const { code, stdout, stderr } = await runCli(['doctor', '--engine', 'verl', '--smoke', '--json'], {
      cwd: folder,
      env,
      deadlineMs: 540_000,
    })
    const { problems, checks } = JSON.parse(stdout || '{}') as { problems: number; checks: Check[] }
    return { code, problems, checks, output: stdout + stderr, left: await readdir(temporary) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

it('doctor --smoke trains two steps with the real verl: every token is accounted for, logprobs agree, nothing is left', {
  tags: 'quick',
  timeout: 600_000,
}, async () => {
  const { code, problems, checks, output, left } = await smoke()
  expect(problems, output).toBe(0)
  expect(code).toBe(0)
  const message = (name: string) => checks.find((check) => check.name === name)?.message
  expect(message('step 2')).toMatch(/^rollout [\d.]+ s, logprobs [\d.]+ s, update [\d.]+ s, weightSync [\d.]+ s/)
  expect(message('tokens')).toMatch(/^[1-9]\d* sampled, [1-9]\d* trained.*, 0 unexplained$/)
  expect(message('logprobs')).toMatch(/differ by at most \d\.\de-\d+ \(limit 0\.0001\)$/)
  expect(checks.at(-1)).toMatchObject({ name: 'smoke', ok: true, message: expect.stringMatching(/^verl finished 2 steps after \d+ s$/) })
  expect(left.filter((name) => name.startsWith('aworld-train'))).toEqual([])
})

it('doctor --smoke finds one token that is trained in the place of another', async () => {
  const { code, checks, output } = await smoke({
    VERL_USE_EXTERNAL_MODULES: 'shift_one_token',
    PYTHONPATH: join(bridgeDirectory, 'tests', 'faults'),
  })
  expect(code, output).toBe(1)
  expect(checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['logprobs'])
}, 600_000)
