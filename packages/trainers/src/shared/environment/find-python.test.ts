import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verlPython } from '../../verl/python/version-rules.ts'
import { findPython } from './find-python.ts'
import { inspectPython } from './inspect-python.ts'

let folder: string
let python3: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-python-'))
  python3 = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const complete = {
  verl: '0.9.1',
  torch: '2.13.0',
  ray: '2.60.0',
  transformers: '5.10.4',
  tensordict: '0.10.0',
  numpy: '2.4.6',
  pyarrow: '26.0.1',
  'hydra-core': '1.3.8',
  TransferQueue: '0.1.11',
  cachetools: '8.0.0',
  fastapi: '0.165.0',
  uvicorn: '0.54.0',
  aiohttp: '3.14.5',
}

/** A wrapper of the real python3 that finds only the metadata of these packages and reports `version`. */
async function interpreter(path: string, packages: Readonly<Record<string, string>>, version = '3.11.7'): Promise<string> {
  const site = `${path}.site`
  await mkdir(site, { recursive: true })
  await writeFile(join(site, 'platform.py'), `python_version = lambda: "${version}"\nmachine = lambda: "x86_64"\n`)
  for (const [name, version] of Object.entries(packages)) {
    const directory = join(site, `${name.replaceAll('-', '_')}-${version}.dist-info`)
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, 'METADATA'), `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`)
  }
  return await script(path, `PYTHONPATH=${site} exec ${python3} -S "$@"`)
}

async function script(path: string, body: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  return path
}

/** An empty project, and a PATH with one folder. */
async function place() {
  const projectDirectory = await mkdtemp(join(folder, 'project-'))
  const bin = await mkdtemp(join(folder, 'bin-'))
  return { projectDirectory, bin, env: { PATH: bin } as NodeJS.ProcessEnv }
}

describe('findPython', () => {
  it('takes the first that has verl: what setup made, then the environments of the project, then the active one, then PATH', async () => {
    const { projectDirectory, bin, env } = await place()
    const conda = join(folder, 'conda')
    const active = join(folder, 'active')
    const places = [
      [join(bin, 'python'), 'PATH'],
      [join(bin, 'python3'), 'PATH'],
      [join(conda, 'bin', 'python'), 'CONDA_PREFIX'],
      [join(active, 'bin', 'python'), 'VIRTUAL_ENV'],
      [join(projectDirectory, 'venv/bin/python'), 'venv of the project'],
      [join(projectDirectory, '.venv/bin/python'), '.venv of the project'],
      [join(projectDirectory, '.aworld-train/python/verl/bin/python'), '.aworld-train/python/verl of the project'],
    ] as const
    const environment = { ...env, VIRTUAL_ENV: active, CONDA_PREFIX: conda }
    for (const [path, source] of places) {
      await interpreter(path, complete)
      expect(await findPython(verlPython, { env: environment, projectDirectory })).toMatchObject({ path, source, passedOver: [] })
    }
  })

  it('takes what setup made in a folder above the project', async () => {
    const root = join(folder, 'above')
    const made = await interpreter(join(root, '.aworld-train/python/verl/bin/python'), complete)
    const projectDirectory = join(root, 'examples', 'one')
    expect(await findPython(verlPython, { env: {}, projectDirectory })).toMatchObject({
      path: made,
      source: `.aworld-train/python/verl of ${root}`,
    })
  })

  it('passes over those without verl and those that do not run, and tells why', async () => {
    const { projectDirectory, bin, env } = await place()
    const without = await interpreter(join(projectDirectory, '.venv/bin/python'), { torch: '2.13.0' })
    const broken = await script(join(projectDirectory, 'venv/bin/python'), 'echo "cannot open shared object file" >&2; exit 127')
    const good = await interpreter(join(bin, 'python3'), complete)
    const found = await findPython(verlPython, { env, projectDirectory })
    expect(found.path).toBe(good)
    expect(found.passedOver).toEqual([
      { path: without, source: '.venv of the project', reason: expect.stringMatching(/^Python 3[.\d]+ without verl$/) },
      { path: broken, source: 'venv of the project', reason: expect.stringMatching(/ended with 127, saying: cannot open shared/) },
    ])
  })

  it('takes what AWORLD_TRAIN_PYTHON names, or nothing', async () => {
    const { projectDirectory, bin, env } = await place()
    await interpreter(join(bin, 'python3'), complete)
    const projectPython = await interpreter(join(projectDirectory, 'tools/python'), complete)
    const ask = (value: string) => findPython(verlPython, { env: { ...env, AWORLD_TRAIN_PYTHON: value }, projectDirectory })
    expect(await ask(projectPython)).toMatchObject({ path: projectPython, source: 'AWORLD_TRAIN_PYTHON' })
    expect(await ask('./tools/python')).toMatchObject({ path: projectPython })
    await interpreter(projectPython, {})
    await rm(`${projectPython}.site`, { recursive: true })
    await expect(ask(projectPython)).rejects.toMatchObject({
      code: 'TRAINER_ENVIRONMENT',
      message: expect.stringMatching(/\(AWORLD_TRAIN_PYTHON\) cannot run verl: verl is not installed; run "aworld-train setup verl"/),
    })
    await expect(ask('/nowhere/python')).rejects.toMatchObject({
      code: 'TRAINER_ENVIRONMENT',
      message: '/nowhere/python cannot be used as Python: there is no such program. Correct AWORLD_TRAIN_PYTHON, or unset it.',
    })
  })

  it('refuses an older verl with the remedy instead of looking further, and warns of a newer one', async () => {
    const { projectDirectory, bin, env } = await place()
    await interpreter(join(bin, 'python3'), complete)
    const old = await interpreter(join(projectDirectory, '.venv/bin/python'), { ...complete, verl: '0.8.0' })
    await expect(findPython(verlPython, { env, projectDirectory })).rejects.toMatchObject({
      code: 'TRAINER_ENVIRONMENT',
      message: expect.stringMatching(/\.venv of the project\) cannot run verl: verl 0\.8\.0 is older than 0\.9.*verl==0\.9\.1/),
      details: { path: old },
    })
    await rm(`${old}.site`, { recursive: true })
    await interpreter(old, { ...complete, verl: '0.10.0' })
    const { report } = await findPython(verlPython, { env, projectDirectory })
    expect(report.problems).toEqual([{ level: 'warning', about: 'verl', message: expect.stringContaining('not tested') }])
  })

  it('refuses a Python that verl does not run on', async () => {
    const { projectDirectory, bin, env } = await place()
    await interpreter(join(bin, 'python3'), complete, '3.13.2')
    await expect(findPython(verlPython, { env, projectDirectory })).rejects.toThrow(
      /Python 3\.13\.2 cannot run verl 0\.9\.1, which needs 3\.10, 3\.11 or 3\.12/,
    )
  })

  it('without any says what it looked at and what makes one', async () => {
    const { projectDirectory, bin, env } = await place()
    await interpreter(join(bin, 'python3'), {})
    const failed = findPython(verlPython, { env, projectDirectory })
    await expect(failed).rejects.toThrow(/No Python with verl was found: run "aworld-train setup verl"/)
    await expect(failed).rejects.toThrow(`${join(bin, 'python3')} (PATH): Python 3`)
    await rm(join(bin, 'python3'))
    await expect(findPython(verlPython, { env, projectDirectory })).rejects.toThrow(/interpreter that has it\.$/)
  })
})

describe('inspectPython', () => {
  it('reads verl on PYTHONPATH that is no installed package', async () => {
    const source = await mkdtemp(join(folder, 'source-'))
    await mkdir(join(source, 'verl/version'), { recursive: true })
    await writeFile(join(source, 'verl/__init__.py'), 'raise RuntimeError("must not be imported")')
    await writeFile(join(source, 'verl/version/version'), '0.9.2.dev1\n')
    const { packages } = await inspectPython(python3, verlPython, { env: { PYTHONPATH: source } })
    expect(packages['verl']).toBe('0.9.2.dev1')
  })

  it('is not confused by what an interpreter prints when it starts', async () => {
    const noisy = await script(join(folder, 'noisy'), `echo '{"a": 1}'; echo 'aworld-train-probe' >&2; exec ${python3} "$@"`)
    expect((await inspectPython(noisy, verlPython)).version).toMatch(/^3\./)
  })

  it('gives up a program that never answers, and ends what it started', async () => {
    const hanging = await script(join(folder, 'hanging'), `echo $$ > ${folder}/pid; sleep 60 & echo $! > ${folder}/child; wait`)
    await expect(inspectPython(hanging, verlPython, { timeoutMs: 3_000 })).rejects.toThrow(
      /hanging cannot be used as Python: gave no answer within 3000 ms/,
    )
    const { readFile } = await import('node:fs/promises')
    for (const name of ['pid', 'child']) {
      const pid = Number(await readFile(join(folder, name), 'utf8'))
      await expect.poll(() => isRunning(pid)).toBe(false)
    }
  })

  it('is no program', async () => {
    const text = join(folder, 'text')
    await writeFile(text, 'no program', { mode: 0o644 })
    await expect(inspectPython(text, verlPython)).rejects.toThrow(/it may not be executed/)
    await expect(inspectPython('/bin/true', verlPython)).rejects.toThrow(/it ended with 0, saying: nothing/)
  })
})

/** A zombie counts as ended. */
function isRunning(pid: number): boolean {
  try {
    return !/^\S+ \(.*\) Z/.test(execFileSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  } catch {
    return false
  }
}
