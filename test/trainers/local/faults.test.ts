// @module-tag quick
import { execFileSync } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseEvents, repository, runCli } from '../../support/run-cli.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { episodesOf, makeProject, openTrainer, type TinyProject } from '../../support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-faults-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const toolServer = join(repository, 'packages/environment/src/testing/tool-server.ts')

/** An agent that asks the policy once, then calls the tool that its task names. */
const agentText = (server: object) => `
async function run(task, context) {
  const { baseUrl, apiKey, model } = context.policy('agent')
  const response = await fetch(baseUrl + '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + apiKey },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] }),
  })
  const { content } = (await response.json()).choices[0].message
  const tools = await context.tools('agent')
  const said = await tools.call({ name: task.data.tool ?? task.id, arguments: task.data }, context.signal).catch((error) => {
    if (task.data.tool) return { content: 'never mind' }
    throw error
  })
  for (let tries = 0; task.id === 'change' && tries < 30; tries++) {
    const { isError, content: words } = await tools.call({ name: 'echo', arguments: { text: 'a' } }, context.signal)
    if (isError) throw new Error(words)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  if (said.isError) throw new Error(said.content)
  return { answer: content, messages: [] }
}
export const agent = { agents: [{ name: 'agent', trainable: true, mcpConfig: { mcpServers: { tools: ${JSON.stringify(server)} } } }], run }
`

describe('a tool server that misbehaves ends the episode with a reason', () => {
  it('crashing, answering 100 MB or invalid UTF-8, changing its tools', async () => {
    const tasks = [
      { id: 'echo', data: { text: 'fine' } },
      { id: 'crash' },
      { id: 'caught', data: { tool: 'crash' } },
      { id: 'big', data: { bytes: 100 * 2 ** 20 } },
      { id: 'invalid' },
      { id: 'change' },
      { id: 'fail' },
    ]
    const project = await makeProject(folder, model, {
      definition: { agent: './agent.ts#agent' },
      config: { concurrency: 4 },
      files: {
        'agent.ts': agentText({ command: 'node', args: [toolServer] }),
        'test.jsonl': tasks.map((task, index) => `${JSON.stringify({ ...task, prompt: `Is ${index} even?`, answer: 'no' })}\n`).join(''),
      },
    })
    const trainer = await openTrainer(project)
    const { failed, rollouts } = await trainer.inference('./test.jsonl')
    const episodes = await episodesOf(project)
    const reason = (id: string) => {
      const episode = episodes.find(({ taskId }) => taskId === id)
      return `${episode?.stopReason} ${episode?.error?.code} ${episode?.error?.message}`
    }
    expect(reason('echo')).toMatch(/^(completed|truncated) /)
    expect(reason('crash')).toMatch(/^failed TOOL_SERVER_DIED .*"tools".*out of luck/s)
    // An agent that catches the error has lost what the server kept all the same.
    expect(reason('caught')).toMatch(/^failed TOOL_SERVER_DIED .*"tools".*out of luck/s)
    expect(reason('big')).toMatch(/TOOL_RESULT_INVALID: The answer is 104857\d+ bytes long; at most \d+ are read\. Read the cause/)
    expect(reason('invalid')).toMatch(/TOOL_RESULT_INVALID: .*UTF-8/)
    expect(reason('change')).toMatch(/^failed .*ENVIRONMENT_TOOLS_CHANGED.*"tools"/)
    expect(reason('fail')).toMatch(/^failed AGENT_FAILED .*no such page/)
    expect({ failed, rollouts }).toEqual({ failed: 6, rollouts: 7 })
  })

  it('hanging: the call ends at the timeout of the server, which is named', async () => {
    const project = await makeProject(folder, model, {
      files: {
        'agent.ts': agentText({ command: 'node', args: [toolServer], timeout: 0.5 }),
        'test.jsonl': `${JSON.stringify({ id: 'hang', prompt: 'Is 1 even?', answer: 'no' })}\n`,
      },
    })
    await expect((await openTrainer(project)).inference('./test.jsonl')).rejects.toMatchObject({ code: 'TOOL_TIMEOUT' })
    const [episode] = await episodesOf(project)
    expect(episode).toMatchObject({
      stopReason: 'failed',
      error: {
        code: 'TOOL_TIMEOUT',
        message: expect.stringMatching(/"hang".*"tools" gave no answer within 0\.5 s; raise the server's timeout/),
      },
    })
  })

  it('absent: the run fails with code 1 and names the server and its command', async () => {
    const project = await makeProject(folder, model, {
      files: { 'agent.ts': agentText({ command: './no-such-server', args: [] }) },
    })
    const { code, stdout, stderr } = await runCli(['train', project.folder])
    expect(code).toBe(1)
    expect(stdout + stderr).toMatch(/"tools".*no-such-server.*Check its command/s)
  })
})

describe('a run folder that cannot be used', () => {
  it.for(['280k', '600k'])('on a full disk of %s: says so, and the same command resumes once there is room', async (size, { skip }) => {
    const disk = join(folder, `disk-${size}`)
    await mkdir(disk)
    if (!mount(disk, `size=${size}`)) return skip('a small disk can be mounted by root on Linux only')
    try {
      const project = await makeProject(folder, model, { definition: { runPath: join(disk, 'runs') }, config: { training: { steps: 12 } } })
      const full = await runCli(['train', project.folder])
      expect(full.stdout + full.stderr).toMatch(/disk is full.*[Ff]ree space.*run/s)
      expect(full.stderr).toMatch(/The run stays; to resume .*:\n {2}npx aworld-train train /)
      expect(full.stderr).not.toMatch(/^\s+at /m)
      expect(full.code).toBe(1)
      execFileSync('mount', ['-o', 'remount,size=50m', disk])
      const again = await runCli(['train', project.folder, '--json'])
      expect(again.code, again.stdout + again.stderr).toBe(0)
      const [run, ...others] = await project.runs()
      expect(others).toEqual([])
      const report = JSON.parse(await readFile(join(run as string, 'report.json'), 'utf8')) as RunReport
      expect(report.curve).toHaveLength(12)
      expect(report.ledger?.unexplained).toBe(0)
    } finally {
      execFileSync('umount', [disk])
    }
  })

  it('read-only: refused before anything is tried', async ({ skip }) => {
    const disk = join(folder, 'read-only')
    await mkdir(disk)
    const mounted = process.getuid?.() === 0 ? mount(disk, 'ro') : false
    if (!mounted && process.getuid?.() === 0) return skip('root writes anywhere, and no read-only disk could be mounted')
    if (!mounted) await chmod(disk, 0o555)
    try {
      const project = await makeProject(folder, model, { definition: { runPath: join(disk, 'runs') } })
      const { code, stdout, stderr } = await runCli(['train', project.folder])
      expect(stdout + stderr).toMatch(/read-only\/runs cannot be written\. Make the run folder writable, or set another runPath/)
      expect(code).not.toBe(0)
    } finally {
      if (mounted) execFileSync('umount', [disk])
    }
  })

  it('of another version: refused, named or not, and never passed over in silence', async () => {
    const project = await makeProject(folder, model)
    const trainer = await openTrainer(project)
    const { path } = await trainer.train()
    const file = join(path, 'manifest.json')
    await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), version: 99, status: 'running' }))
    const named = await runCli(['train', project.folder, '--resume', path])
    expect(named.stdout + named.stderr).toMatch(
      /has format 99, this version reads \d+\. Open it with the version that made it, or start a new run with --new/,
    )
    expect(named.code).not.toBe(0)
    const replayed = await runCli(['replay', path])
    expect(replayed.stderr).toMatch(/has format 99/)
    const unnamed = await runCli(['train', project.folder])
    expect(unnamed.stderr).toMatch(
      /manifest\.json cannot be used \(.*has format 99, this version reads \d+\), .*move the folder away, or start a new run with --new\.\n$/,
    )
    expect(unnamed).toMatchObject({ code: 1, stdout: '' })
    expect(await project.runs()).toEqual([path])
  })

  it('of two processes the second is refused, and the first goes on', async () => {
    const project = await makeProject(folder, model, { config: { training: { steps: 3 } } })
    let second: ReturnType<typeof runCli> | undefined
    const first = await runCli(['train', project.folder, '--json'], {
      onLine(line, child) {
        if (second || !line.includes('"step-end"')) return
        child.kill('SIGSTOP')
        second = runCli(['train', project.folder]).finally(() => child.kill('SIGCONT'))
      },
    })
    const refused = await second
    expect(refused?.stdout ?? '').not.toContain('reward curve')
    expect(`${refused?.stdout}${refused?.stderr}`).toMatch(/is in use by process \d+\. Wait for it, or start a new run with --new/)
    expect(refused?.code).not.toBe(0)
    expect(first.code, first.stderr).toBe(0)
    expect(parseEvents(first.stdout).at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })
    expect(await project.runs()).toHaveLength(1)
  })
})

describe('a model or checkpoint that is damaged', () => {
  it('the starting model: named with the damage, and no run is left', async () => {
    const broken = join(folder, 'broken')
    await cp(model, broken, { recursive: true })
    await truncate(join(broken, 'model.safetensors'), 5000)
    const project = await makeProject(folder, broken)
    const { code, stdout, stderr } = await runCli(['train', project.folder])
    expect(stdout + stderr).toMatch(/broken\/model\.safetensors cannot be used: it is cut off/)
    expect(code).toBe(1)
    expect(await project.runs()).toEqual([])
  })

  it('the newest checkpoint of a run: the one before is used, and the curve is the same', async () => {
    const changes = { config: { training: { steps: 4 } } }
    const project = await makeProject(folder, model, changes)
    const stopped = await runCli(['train', project.folder, '--json'], {
      onLine: (line, child) => line.includes('"step-end"') && line.includes('"step":3') && child.kill('SIGKILL'),
    })
    expect(stopped.signal).toBe('SIGKILL')
    const [run] = await project.runs()
    const checkpoints = (await readdir(join(run as string, 'checkpoints'))).filter((name) => /^step-\d+$/.test(name)).sort()
    await truncate(join(run as string, 'checkpoints', checkpoints.at(-1) as string, 'model.safetensors'), 5000)
    const again = await runCli(['train', project.folder, '--json'])
    expect(again.code, again.stdout + again.stderr).toBe(0)
    const warnings = parseEvents(again.stdout).flatMap((event) => (event.type === 'warning-raised' ? [event.message] : []))
    expect(warnings.join('\n')).toMatch(/cannot be read \(.*model\.safetensors.*5000 bytes.*\); using the one before it/)
    const whole = await makeProject(folder, model, changes)
    await (await openTrainer(whole)).train()
    expect(await curveOf(run as string)).toEqual(await curveOf((await whole.runs())[0] as string))
  })
})

describe('segments that are damaged', () => {
  const changes = { config: { training: { steps: 5, checkpointEvery: 2 } } }

  /** A run that was killed after step 3, which has a checkpoint of step 2. */
  async function killedRun() {
    const project = await makeProject(folder, model, changes)
    await runCli(['train', project.folder, '--json'], {
      onLine: (line, child) => line.includes('"step-end"') && line.includes('"step":3') && child.kill('SIGKILL'),
    })
    const [run] = await project.runs()
    return { project, run: run as string, segment: join(run as string, 'segments', '000001.bin') }
  }

  it('at their end: what is lost is named, runs again, and the curve is that of a whole run', async () => {
    const { project, run, segment } = await killedRun()
    const reader = readRun(run)
    const lost = reader.steps().at(-1)?.rollouts.at(-1)
    reader.close()
    await truncate(segment, (await stat(segment)).size - 400)
    const again = await runCli(['train', project.folder, '--json'])
    expect(again.code, again.stdout + again.stderr).toBe(0)
    const events = parseEvents(again.stdout)
    const damage = events.find((event) => event.type === 'warning-raised' && event.code === 'SEGMENT_DAMAGED')
    expect(damage).toMatchObject({ message: expect.stringMatching(/rollouts lost tokens \(.*train\/3\/.* again.*goes on after step 2\.$/) })
    expect((damage as { message: string }).message).toContain(lost)
    expect(events.find(({ type }) => type === 'run-start')).toMatchObject({ resumedFromStep: 2 })
    const whole = await makeProject(folder, model, changes)
    await (await openTrainer(whole)).train()
    expect(await curveOf(run)).toEqual(await curveOf((await whole.runs())[0] as string))
    const { ledger, counts } = JSON.parse(await readFile(join(run, 'report.json'), 'utf8')) as RunReport
    expect(ledger?.unexplained).toBe(0)
    expect(counts.rollouts).toBe(40)
  })

  it('at their beginning: training goes on, and what was trained of them stays counted', async () => {
    const { project, run, segment } = await killedRun()
    const file = await open(segment, 'r+')
    await file.write('damaged', 0)
    await file.close()
    const { report, warnings } = await resume(project)
    expect(warnings.join()).toMatch(
      /1 of \d+ rollouts lost tokens \(train\/1\/.*\)\. It had been used before: text and reward stay, and stay counted\.$/,
    )
    expect(report).toMatchObject({ status: 'finished', counts: { rollouts: 40 }, ledger: { unexplained: 0 } })
    expect(await episodesOf(project)).toHaveLength(40)
    expect((await runCli(['export', run, '--to', join(folder, 'rest.jsonl')])).stdout).toContain('39 samples of split train')
  })

  async function resume(project: TinyProject) {
    const warnings: string[] = []
    const onEvent = (event: RunEvent) => void (event.type === 'warning-raised' && warnings.push(event.message))
    return { report: await (await openTrainer(project, { onEvent })).train(), warnings }
  }
})

describe('a port in use', () => {
  it('is named, with the remedy', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = taken.address() as AddressInfo
      const { code, stderr } = await runCli(['serve', model, '--port', String(port)])
      expect(stderr).toMatch(new RegExp(`${port}.*in use.*another port`, 's'))
      expect(stderr).not.toMatch(/^\s+at /m)
      expect(code).toBe(1)
    } finally {
      taken.close()
    }
  })
})

async function curveOf(run: string): Promise<number[]> {
  const { curve } = JSON.parse(await readFile(join(run, 'report.json'), 'utf8')) as RunReport
  return curve.map(({ reward }) => reward)
}

function mount(directory: string, options: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
