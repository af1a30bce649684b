// @module-tag quick
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { swiftEnvironment } from '../../support/python-environment.ts'
import { runCli } from '../../support/run-cli.ts'

interface Check {
  readonly name: string
  readonly ok: boolean
  readonly message: string
}

it('doctor --smoke trains two steps with the real ms-swift: every token is accounted for, logprobs agree, nothing is left', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld train swift-'))
  try {
    const temporary = await mkdtemp(join(folder, 'tmp-'))
    const env = { AWORLD_TRAIN_PYTHON: await swiftEnvironment(), TMPDIR: temporary }
    const { code, stdout, stderr } = await runCli(['doctor', '--engine', 'swift', '--smoke', '--json'], {
      cwd: folder,
      env,
      deadlineMs: 540_000,
    })
    const output = stdout + stderr
    const { problems, checks } = JSON.parse(stdout || '{}') as { problems: number; checks: Check[] }
    expect(problems, output).toBe(0)
    expect(code).toBe(0)
    const message = (name: string) => checks.find((check) => check.name === name)?.message
    expect(message('step 2')).toMatch(/^rollout [\d.]+ s, update [\d.]+ s/)
    expect(message('tokens')).toMatch(/^[1-9]\d* sampled, [1-9]\d* trained.*, 0 unexplained$/)
    expect(message('logprobs')).toMatch(/differ by at most \d\.\de-\d+ \(limit 0\.0001\)$/)
    expect(checks.at(-1)).toMatchObject({ name: 'smoke', ok: true, message: expect.stringMatching(/^swift finished 2 steps after \d+ s$/) })
    expect((await readdir(temporary)).filter((name) => name.startsWith('aworld-train'))).toEqual([])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}, 1_500_000)
