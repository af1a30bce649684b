import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { repository, runCli } from './support/run-cli.ts'
import { makeProject } from './support/tiny-project.ts'

it('checks the machine and every module of a project, dry-runs its reward and reports the tokens of one rollout', async () => {
  const { code, stdout, stderr } = await runCli([
    'doctor',
    'examples/periodic-table',
    '--template',
    'examples/periodic-table/model',
    '--json',
  ])
  expect(code, stderr).toBe(0)
  const { problems, checks } = JSON.parse(stdout) as { problems: number; checks: { name: string; ok: boolean; message: string }[] }
  expect(problems).toBe(0)
  const message = (name: string) => checks.find((check) => check.name === name)?.message
  expect(message('simd')).toContain('plain')
  expect(message('threads')).toMatch(/^\d+ /)
  expect(message('reward dry run')).toMatch(/^1 for the reference answer/)
  expect(message('tools')).toBe('lookup, calculate')
  expect(message('history')).toBeDefined()
  expect(message('rollout')).toMatch(/tokens sampled, \d+ with loss mask 1/)
})

it('makes the model of a project that has only a warm-up, and leaves nothing', async () => {
  const temporary = await mkdtemp(join(tmpdir(), 'aworld-train-doctor-test-'))
  onTestFinished(() => rm(temporary, { recursive: true, force: true }))
  const env = { TMPDIR: temporary, TEMP: temporary, TMP: temporary }
  const { folder } = await makeProject(temporary, '', {
    config: { model: { warmUp: './warm-up.ts#warmUp' } },
    files: {
      'warm-up.ts': `import { makeTinyModel } from '${join(repository, 'test/support/tiny-model.ts')}'
        export const warmUp = ({ directory }: { directory: string }) => makeTinyModel(directory)`,
    },
  })
  const { code, stdout, stderr } = await runCli(['doctor', folder, '--json'], { env })
  expect(code, stderr).toBe(0)
  const { checks } = JSON.parse(stdout) as { checks: { name: string; message: string }[] }
  expect(checks.find(({ name }) => name === 'warm-up')?.message).toBe('made a model')
  expect(checks.find(({ name }) => name === 'rollout')?.message).toMatch(/tokens sampled/)
  expect((await readdir(temporary)).filter((name) => name.startsWith('aworld-train-'))).toEqual([])
})
