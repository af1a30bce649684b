import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { planVerl } from '../config/plan-verl.ts'
import { readVerlConfig } from '../config/read-verl-config.ts'
import { verlRun } from '../config/verl-run.test-support.ts'
import { readWithExcerpt } from '../testing/excerpt-of-verl.ts'
import { renderRunFiles, writeRunFiles } from './write-run-files.ts'

let directory: string
let service: Server
let channel: string
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train a run '))
  // This Python records its command and its variables.
  mkdirSync(join(directory, 'bin'))
  const python = join(directory, 'bin', 'python3')
  writeFileSync(python, `#!/bin/sh\nprintf '%s\\0' "$@" >"$RECORD.argv"\nenv -0 >"$RECORD.env"\n`)
  chmodSync(python, 0o755)
  service = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => service.once('listening', resolve))
  channel = `ws://127.0.0.1:${(service.address() as { port: number }).port}/v1/channel`
})
afterAll(() => {
  service.close()
  rmSync(directory, { recursive: true, force: true })
})

const source = { 'actor_rollout_ref.model.path': '/models/Qwen3 4B', trainer: { n_gpus_per_node: 2 }, 'data.train_files': null }

async function written(
  name: string,
  parts: Parameters<typeof verlRun>[0] = {},
  keys: Record<string, unknown> = {},
): Promise<{ path: string; overrides: readonly string[] }> {
  const path = join(directory, name)
  const config = await readVerlConfig({ ...source, ...keys }, { verl: readWithExcerpt })
  const plan = await planVerl(config, verlRun({ path, ...parts }))
  expect([...config.problems, ...plan.problems]).toEqual([])
  await writeRunFiles(plan, { train: null, test: null })
  return { path, overrides: plan.overrides }
}

interface Ran {
  readonly code: number
  readonly stderr: string
  readonly argv: string[]
  readonly env: Record<string, string>
}

function run(
  path: string,
  { args = [], env = {}, cwd = '/' }: { args?: string[]; env?: Record<string, string>; cwd?: string } = {},
): Promise<Ran> {
  const record = join(path, 'record')
  const environment = {
    PATH: `${join(directory, 'bin')}:${process.env['PATH']}`,
    RECORD: record,
    // This keeps the script from finding a cluster of this machine.
    RAY_TMPDIR: directory,
    AWORLD_TRAIN_CHANNEL: channel,
    AWORLD_TRAIN_CHANNEL_TOKEN: 'secret',
    ...env,
  }
  return new Promise((resolve) => {
    execFile('bash', [join(path, 'run.sh'), ...args], { env: environment, cwd, timeout: 120_000 }, (error, _, stderr) => {
      const read = (ending: string) =>
        existsSync(`${record}.${ending}`) ? readFileSync(`${record}.${ending}`, 'utf8').split('\0').filter(Boolean) : []
      const code = error ? Number((error as { code?: unknown }).code) : 0
      resolve({
        code,
        stderr,
        argv: read('argv'),
        env: Object.fromEntries(read('env').map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)])),
      })
    })
  })
}

describe('run.sh', () => {
  it('is a script that bash reads, and that may be executed', async () => {
    const { path } = await written('syntax')
    execFileSync('bash', ['-n', join(path, 'run.sh')])
    expect(statSync(join(path, 'run.sh')).mode & 0o111).toBe(0o111)
  })

  it('starts verl with the overrides of the plan, from any folder', async () => {
    const { path, overrides } = await written('plain')
    const { code, stderr, argv, env } = await run(path, { args: ['trainer.total_epochs=2', 'a.b=x y'] })
    expect([stderr, code]).toEqual(['', 0])
    expect(argv.slice(0, 2)).toEqual(['-m', 'verl.trainer.main_ppo'])
    expect(argv).toEqual(expect.arrayContaining(overrides.filter((each) => !each.includes('env_vars'))))
    expect(argv).toContain(`++ray_kwargs.ray_init.runtime_env.env_vars.AWORLD_TRAIN_CHANNEL='${channel}'`)
    expect(argv.slice(-3)).toEqual([`hydra.run.dir=${path}/hydra`, 'trainer.total_epochs=2', 'a.b=x y'])
    expect(env).toMatchObject({
      AWORLD_TRAIN_CHANNEL: channel,
      AWORLD_TRAIN_RUN: 'gaia',
      AWORLD_TRAIN_RUN_PATH: path,
      AWORLD_TRAIN_INCARNATION: expect.stringMatching(/^[\w-]{16,}$/),
      AWORLD_TRAIN_CHANNEL_TOKEN_FILE: `${path}/channel.token`,
      VERL_USE_EXTERNAL_MODULES: 'aworld_train_bridge.verl.plugin',
      PYTHONPATH: expect.stringContaining('trainers/python'),
    })
    expect(readFileSync(join(path, 'channel.token'), 'utf8')).toBe('secret')
    expect(statSync(join(path, 'channel.token')).mode & 0o077).toBe(0)
  })

  it('takes the interpreter that was found, and tells Ray of one whose path bash would cut', async () => {
    const folder = join(directory, 'with a blank')
    mkdirSync(folder)
    cpSync(join(directory, 'bin', 'python3'), join(folder, 'python'))
    const { path } = await written('interpreter', { python: join(folder, 'python') })
    const { code, stderr, argv } = await run(path)
    expect([stderr, code]).toEqual(['', 0])
    const key = '++ray_kwargs.ray_init.runtime_env.py_executable='
    const value = argv.find((each) => each.startsWith(key))?.slice(key.length + 1, -1)
    expect(execFileSync('bash', ['-c', `printf %s ${value}`], { encoding: 'utf8' })).toBe(join(folder, 'python'))
    const plain = await run((await written('plain interpreter')).path, { env: { AWORLD_TRAIN_PYTHON: 'python3' } })
    expect(plain.argv.join(' ')).not.toContain('py_executable')
  })

  it('has the parameters of the published script, each of which a variable overrides', async () => {
    const { path } = await written('variables', { reward: { path: '/p/reward.py', name: 'score' } })
    const env = {
      GPUS_PER_NODE: '8',
      NNODES: '2',
      model_path: '/other',
      actor_lr: '3e-6',
      n_resp_per_prompt: '4',
      use_kl_loss: 'true',
      reward_fn_name: 'other',
      train_files: '[/a.parquet,/b.parquet]',
      max_response_length: '9',
    }
    const { argv, code } = await run(path, { env })
    expect(code).toBe(0)
    expect(argv).toEqual(
      expect.arrayContaining([
        'trainer.n_gpus_per_node=8',
        'trainer.nnodes=2',
        'actor_rollout_ref.model.path=/other',
        'actor_rollout_ref.actor.optim.lr=3e-6',
        'actor_rollout_ref.rollout.n=4',
        'actor_rollout_ref.actor.use_kl_loss=true',
        'reward.custom_reward_function.name=other',
        'data.train_files=[/a.parquet,/b.parquet]',
        'data.max_response_length=9',
      ]),
    )
  })

  it('takes what the scheduler of a cluster says, unless a layout says more', async () => {
    const env = { SLURM_GPUS_ON_NODE: '4', SLURM_JOB_NUM_NODES: '2' }
    const plain = await written('slurm')
    expect((await run(plain.path, { env })).argv).toEqual(expect.arrayContaining(['trainer.n_gpus_per_node=4', 'trainer.nnodes=2']))
    const laid = await written('layout', {}, { layout: { mode: 'standalone', trainer: { gpus: 2 } } })
    expect((await run(laid.path, { env })).argv).toEqual(expect.arrayContaining(['trainer.n_gpus_per_node=2', 'trainer.nnodes=1']))
  })

  it('still finds its files when the run directory has moved', async () => {
    const { path } = await written('before')
    const moved = join(directory, 'after')
    cpSync(path, moved, { recursive: true })
    const { argv } = await run(moved)
    expect(argv).toContain(`actor_rollout_ref.rollout.agent.agent_loop_config_path='${moved}/agent.yaml'`)
    expect(argv.join('\n')).not.toContain('/before')
  })

  it('describes a Ray of its own, and to a cluster that it joins it says nothing of that', async () => {
    const { path } = await written('ray', {}, { 'ray_kwargs.ray_init.num_cpus': 32, '+ray_kwargs.ray_init.object_store_memory': 1e9 })
    const rayArguments = async (env: Record<string, string> = {}) => {
      const { argv, code } = await run(path, { env })
      expect([code, argv.filter((each) => each.startsWith('hydra.run.dir='))]).toEqual([0, [`hydra.run.dir=${path}/hydra`]])
      return argv.filter((each) => /ray_init\.(num_cpus|object_store_memory)/.test(each)).map((each) => each.replace(/^\+*/, ''))
    }
    const rayKeys = ['ray_kwargs.ray_init.num_cpus=32', 'ray_kwargs.ray_init.object_store_memory=1000000000']
    expect(await rayArguments()).toEqual(rayKeys)
    expect(await rayArguments({ RAY_ADDRESS: 'local' })).toEqual(rayKeys)
    expect(await rayArguments({ RAY_ADDRESS: '10.0.0.1:6379' })).toEqual([])
    const started = mkdtempSync(join(directory, 'ray-'))
    mkdirSync(join(started, 'ray'))
    writeFileSync(join(started, 'ray', 'ray_current_cluster'), '10.0.0.1:6379')
    expect(await rayArguments({ RAY_TMPDIR: started })).toEqual([])
  })

  it('gives workers on nodes that others started what the run sets', async () => {
    const { path } = await written('workers', {}, { trainer: { n_gpus_per_node: 1 }, smoke: true })
    const { argv, env } = await run(path, { env: { OMP_NUM_THREADS: '3' } })
    const key = '++ray_kwargs.ray_init.runtime_env.env_vars.'
    expect(argv).toEqual(
      expect.arrayContaining([
        `${key}AWORLD_TRAIN_SMOKE='1'`,
        `${key}VERL_ENGINE_DEVICE='cuda'`,
        `${key}OMP_NUM_THREADS='3'`,
        `${key}VERL_FILE_LOGGER_PATH='${env['VERL_FILE_LOGGER_PATH']}'`,
      ]),
    )
    expect(argv.join('\n')).not.toContain('RAY_USAGE')
    expect(env).toMatchObject({ RAY_OVERRIDE_JOB_RUNTIME_ENV: '1' })
  })

  it('writes elsewhere on request, and never into the copy that Ray removes with a job', async () => {
    const { path } = await written('submitted')
    const copy = join(directory, 'working_dir_files', '_ray_pkg_0123')
    cpSync(path, copy, { recursive: true })
    const refused = await run(copy)
    expect([refused.code, refused.argv]).toEqual([2, []])
    expect(refused.stderr).toMatch(/Ray removes .+_ray_pkg_0123 after the job.*'\{"env_vars": \{"AWORLD_TRAIN_RUN_PATH": "/s)
    const kept = join(directory, 'kept')
    const { argv, env, code } = await run(copy, { env: { AWORLD_TRAIN_RUN_PATH: kept } })
    expect(code).toBe(0)
    expect(argv).toContain(`trainer.default_local_dir='${kept}/checkpoints'`)
    expect(argv).toContain(`data.train_files='${copy}/train_data.parquet'`)
    expect(argv).toContain(`hydra.run.dir=${kept}/hydra`)
    expect(env).toMatchObject({
      AWORLD_TRAIN_RUN_PATH: kept,
      AWORLD_TRAIN_CHANNEL_TOKEN_FILE: `${kept}/channel.token`,
      VERL_FILE_LOGGER_PATH: expect.stringMatching(/kept\/metrics\/[\w-]+\.jsonl$/),
    })
    // The secret is in the file from then on, which is enough.
    expect(await run(copy, { env: { AWORLD_TRAIN_RUN_PATH: kept, AWORLD_TRAIN_CHANNEL_TOKEN: '' } })).toMatchObject({ code: 0 })
  })

  it.each([
    [
      'no service',
      { AWORLD_TRAIN_CHANNEL: 'ws://127.0.0.1:9/v1/channel' },
      /No rollout service answers at ws:\/\/127\.0\.0\.1:9.*aworld-train serve --config .*serve\.yaml/s,
    ],
    ['no token', { AWORLD_TRAIN_CHANNEL_TOKEN: '' }, /AWORLD_TRAIN_CHANNEL_TOKEN is not set/],
    ['no file of the token', { AWORLD_TRAIN_CHANNEL_TOKEN_FILE: '/gone' }, /There is no \/gone/],
    ['no bridge', { AWORLD_TRAIN_BRIDGE: '/gone' }, /\/gone does not hold the bridge/],
    ['no Python', { AWORLD_TRAIN_PYTHON: '/gone/python' }, /There is no \/gone\/python.*aworld-train setup verl/],
  ])('says what to do with %s, and starts nothing', async (name, env, message) => {
    const { path } = await written(`without ${name}`)
    const { code, stderr, argv } = await run(path, { env })
    expect([code, argv]).toEqual([2, []])
    expect(stderr).toMatch(message)
  })

  it('refuses for a live agent, with the remedy, and there is nothing to serve', async () => {
    const { path } = await written('live', { agent: { name: "it's me", module: null, directory: '/', source: null } })
    const { code, stderr, argv } = await run(path)
    expect([code, argv, existsSync(join(path, 'serve.yaml'))]).toEqual([2, [], false])
    expect(stderr).toMatch(/"it's me" was given as an object.*Export it from a module/)
  })

  it('can be given as the configuration of another run, which is then the same', async () => {
    const { path } = await written('again')
    const first = await planVerl(await readVerlConfig(source, { verl: readWithExcerpt }), verlRun({ path }))
    const config = await readVerlConfig(join(path, 'final_trainer.yaml'), { verl: readWithExcerpt })
    expect(config.problems).toEqual([])
    expect((await planVerl(config, verlRun({ path }))).tree).toEqual(first.tree)
  })
})

describe('the other files', () => {
  const files = async (parts: Parameters<typeof verlRun>[0] = {}, config: Record<string, unknown> = {}) =>
    renderRunFiles(await planVerl(await readVerlConfig({ ...source, ...config }, { verl: readWithExcerpt }), verlRun(parts)))

  it('say of every key that is not a default where it comes from', async () => {
    const text = (await files()).get('final_trainer.yaml')!
    expect(text).toMatch(/^# Configuration of verl 0\.9\.1 for "gaia"/)
    expect(text).toContain('n_gpus_per_node: 2 # user: the configuration\n')
    expect(text).toContain('adv_estimator: grpo # derived: rewards are relative to a group; there is no critic\n')
    expect(text).toMatch(/# derived: progress is read from the file\n\s+logger:\n/)
    expect(text).toContain('resume_mode: auto\n')
  })

  it("keep the user's agent.yaml beside the rendered one", async () => {
    const agentYaml =
      '- name: gaia_agent\n  _target_: ./custom-agent-loop.ts#GaiaAgentLoop\n  deadline_s: 60\n- name: other\n  _target_: ./x.ts#Y\n'
    const rendered = await files({
      agent: { name: 'gaia_agent', module: '/p/custom-agent-loop.ts#GaiaAgentLoop', directory: '/p', source: agentYaml },
    })
    expect(rendered.get('agent.source.yaml')).toBe(agentYaml)
    expect(rendered.get('agent.yaml')).toMatchInlineSnapshot(`
      "# Rendered from agent.source.yaml by AWorld Train: verl hands rollouts to the bridge, which runs the agent in Node.
      - name: gaia_agent
        _target_: aworld_train_bridge.verl.agent_loop.AworldTrainAgentLoop
        module: /p/custom-agent-loop.ts#GaiaAgentLoop
        run: gaia
        run_path: /runs/gaia
        deadline_s: 60
      "
    `)
  })

  it('are for their owner alone where they may hold secrets', async () => {
    const { path } = await written('secrets')
    const modes = ['serve.yaml', 'final_trainer.yaml', 'run.sh'].map((name) => statSync(join(path, name)).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600, 0o755])
  })

  it('keep the configuration as it was given', async () => {
    expect((await files()).get('config.source.yaml')).toContain('n_gpus_per_node: 2')
    const plan = await planVerl(
      await readVerlConfig(['trainer.nnodes=1', 'actor_rollout_ref.model.path=x'], { verl: readWithExcerpt }),
      verlRun(),
    )
    expect(renderRunFiles(plan).get('config.source.txt')).toBe('trainer.nnodes=1\nactor_rollout_ref.model.path=x\n')
  })
})
