import { mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPython, inspectPython } from '@aworld-train/trainers/shared'
import { verlTrainer } from '@aworld-train/trainers/verl'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { runCli } from '../../support/run-cli.ts'

let folder: string
let complete: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-setup-'))
  complete = await verlEnvironment()
}, 1_200_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

/** The packages of the complete environment behind metadata of others, which is found first. */
async function behind(...stubs: readonly string[]): Promise<NodeJS.ProcessEnv> {
  const site = await mkdtemp(join(folder, 'site-'))
  for (const stub of stubs) {
    const [name, version] = stub.split('==')
    const directory = join(site, `${name}-${version}.dist-info`)
    await mkdir(directory)
    await writeFile(join(directory, 'METADATA'), `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`)
  }
  return { ...process.env, PYTHONPATH: site, AWORLD_TRAIN_PYTHON: complete }
}

describe('aworld-train setup verl', () => {
  it('makes an environment that imports verl and its trainer, below the folder it is started in', async () => {
    const project = await mkdtemp(join(folder, 'project-'))
    const first = await runCli(['setup', 'verl', '--torch', 'cpu'], { cwd: project, deadlineMs: 600_000 })
    expect(first.code, first.stdout + first.stderr).toBe(0)
    expect(first.stdout).toMatch(/^verl in \.aworld-train\/python\/verl\n {2}about 4\.\d GB .*\n {2}verl 0\.9\.1 and torch 2\.13\.0.*\n/)
    expect(first.stdout).toMatch(
      /ready after \d+ s\n {2}Python 3\.1[12]\.\d+, verl 0\.9\.1, torch 2\.13\.0, transformers 5\.10\.4, ray 2\.60\.0, transferqueue 0\.1\.11\n/,
    )
    const environments = join(project, '.aworld-train', 'python')
    expect((await readdir(environments)).filter((name) => name !== 'uv')).toEqual(['verl'])

    const found = await findPython(verlTrainer.python, { env: { PATH: '' }, projectDirectory: project })
    expect(found).toMatchObject({ path: join(environments, 'verl/bin/python'), passedOver: [], report: { problems: [] } })
    const { torch, prefix } = await inspectPython(found.path, verlTrainer.python, { torch: true })
    expect(prefix).toBe(await realpath(join(environments, 'verl')))
    expect(torch).toMatchObject({ error: null })

    const before = await stat(join(environments, 'verl'))
    const again = await runCli(['setup', 'verl', '--torch', 'cpu'], { cwd: project })
    expect(again.stdout).toContain('ready: it stood already')
    expect((await stat(join(environments, 'verl'))).ino).toBe(before.ino)
  })

  it('leaves what is not its own, and refuses what it does not know', async () => {
    const project = await mkdtemp(join(folder, 'own-'))
    await writeFile(join(project, 'notes.txt'), 'mine')
    const cases = [
      [['setup', 'verl', '--directory', '.'], 1, /stands already and was not made by setup/],
      [['setup', 'slime'], 2, /nothing to set up for "slime"; trainers in Python: verl, trl, areal, swift/],
      [['setup', 'verl', '--torch', 'rocm'], 2, /--torch rocm is not known/],
      [['setup', 'verl', '--python', '3.13'], 2, /'3\.13' is invalid.*"3\.11"\|"3\.12"/],
    ] as const
    for (const [args, code, message] of cases) {
      const result = await runCli(args, { cwd: project })
      expect({ code: result.code, stderr: result.stderr }).toEqual({ code, stderr: expect.stringMatching(message) })
    }
    expect(await readdir(project)).toEqual(['notes.txt'])
  })
})

describe('findPython', () => {
  it('refuses verl 0.8 and a verl without TransferQueue, and warns of 0.10', async () => {
    const ask = async (...stubs: readonly string[]) =>
      await findPython(verlTrainer.python, { env: await behind(...stubs), projectDirectory: folder })
    expect((await ask()).report.problems).toEqual([])
    await expect(ask('verl==0.8.0')).rejects.toMatchObject({
      code: 'TRAINER_ENVIRONMENT',
      message: expect.stringMatching(/verl 0\.8\.0 is older than 0\.9.*install verl==0\.9\.1, or run "aworld-train setup verl"/),
    })
    await expect(ask('transformers==5.11.2')).rejects.toThrow(/transformers 5\.11\.2 does not fit verl 0\.9\.1/)
    expect((await ask('verl==0.10.0')).report.problems).toEqual([
      { level: 'warning', about: 'verl', message: expect.stringMatching(/^verl 0\.10\.0 was not tested, 0\.9\.1 was/) },
    ])
  })
})

describe('aworld-train doctor --engine verl', () => {
  const doctor = async (env: Readonly<Record<string, string>>) => {
    const { code, stdout, stderr } = await runCli(['doctor', '--engine', 'verl', '--json'], { cwd: folder, env })
    const { checks } = JSON.parse(stdout || `{"checks": "${stderr}"}`) as { checks: { name: string; ok: boolean; message: string }[] }
    return { code, checks, check: (name: string) => checks.find((each) => each.name === name) }
  }

  it('finds nothing against the environment that setup makes', async () => {
    const { code, checks, check } = await doctor({ AWORLD_TRAIN_PYTHON: complete })
    expect(
      checks.filter(({ ok }) => !ok),
      JSON.stringify(checks),
    ).toEqual([])
    expect(code).toBe(0)
    expect(check('packages')?.message).toMatch(/^verl 0\.9\.1, torch 2\.13\.0, transformers 5\.10\.4, ray 2\.60\.0/)
    expect(check('imports')?.message).toMatch(/^verl's trainer and the bridge, in \d+ s$/)
  })

  it('shows a package that breaks when it is imported, and a torch that the driver does not take, before anything is started', async () => {
    const broken = await mkdtemp(join(folder, 'broken-'))
    await writeFile(join(broken, 'transfer_queue.py'), 'raise ImportError("libzmq.so.5: cannot open shared object file")\n')
    const row = '570.124.06, NVIDIA A100-SXM4-80GB, 81920, 81400, 8.0'
    await writeFile(join(broken, 'nvidia-smi'), `#!/bin/sh\n[ $# = 0 ] && echo "CUDA Version: 12.8" || echo "${row}"\n`, { mode: 0o755 })
    const { code, check } = await doctor({ AWORLD_TRAIN_PYTHON: complete, PYTHONPATH: broken, PATH: `${broken}:/usr/bin:/bin` })
    expect(code).toBe(1)
    expect(check('imports')).toMatchObject({
      ok: false,
      message: expect.stringMatching(/verl\.trainer\.\S+ cannot be imported: ImportError: libzmq\.so\.5.*Run "aworld-train setup verl"/s),
    })
    expect(check('driver')).toMatchObject({ ok: true, message: '570.124.06, CUDA up to 12.8' })
    expect(check('torch')).toMatchObject({
      ok: false,
      message: expect.stringMatching(/CUDA 13\.0, which needs driver 580 or newer; this one is 570/),
    })
  })

  it('names a missing verl, and still looks at the machine', async () => {
    const { code, check } = await doctor({ AWORLD_TRAIN_PYTHON: '', VIRTUAL_ENV: '', CONDA_PREFIX: '', PATH: folder })
    expect(code).toBe(1)
    expect(check('python')?.message).toMatch(/No Python with verl was found: run "aworld-train setup verl"/)
    expect(check('disk')?.ok).toBe(true)
  })
})
