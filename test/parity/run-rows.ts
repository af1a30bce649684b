import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, readdir, readFile, stat } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { createVllmFleet } from '@aworld-train/engines/remote'
import { bridgeDirectory } from '@aworld-train/trainers/shared'
import { planVerl, readVerlConfig, withoutOwnRay } from '@aworld-train/trainers/verl'
import { parse, parseAllDocuments } from 'yaml'
import { commands } from '../../packages/cli/src/commands/index.ts'
import { toOptions } from '../../packages/cli/src/define-command.ts'
import { readWithExcerpt } from '../../packages/trainers/src/verl/testing/excerpt-of-verl.ts'
import { repository, runCli } from '../support/run-cli.ts'
import type { ParityContext } from './parity-context.ts'
import type { ParityRow } from './parity-row.ts'

const inRun = (name: string, verify: (path: string) => unknown) => async (context: ParityContext) => {
  const { report } = await context.trained()
  await verify(join(report.path, name))
}

async function listen(server: Server): Promise<Server> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

/** Runs a script of `env/`: it prints where an agent finds the tool servers. */
async function printsConnection(script: string, folder: string): Promise<void> {
  const cwd = await mkdtemp(join(folder, 'environment-'))
  try {
    const args = [join(repository, 'env', script), '--port', '0', '--tier', 'simulated']
    const { stdout } = await promisify(execFile)('sh', args, { cwd })
    const [first, ...json] = stdout.split('\n')
    assert.equal(first, 'Start mcp server success.')
    const { url, headers, timeout } = JSON.parse(json.join('\n'))['virtualpc-mcp-server']
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/)
    assert.match(headers.Authorization, /^Bearer \S+$/)
    assert.ok(headers.MCP_SERVERS.split(',').includes('terminal-server'))
    assert.equal(timeout, 6000)
  } finally {
    assert.equal((await runCli(['env', 'stop'], { cwd })).stdout, 'stopped\n')
  }
}

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

/** What lies in `run_path`. */
export const runFolderRows: readonly ParityRow[] = [
  {
    theirs: '`agent.yaml`',
    ours: '`agent.yaml`',
    status: 'differs',
    note: 'Names each agent, whether it is trained, and the module; no code is generated.',
    check: inRun('agent.yaml', async (path) =>
      assert.deepEqual(parse(await readFile(path, 'utf8')), [
        { name: 'parity_agent', trainable: true, module: './custom-agent-loop.ts#CustomAgentLoop' },
      ]),
    ),
  },
  {
    theirs: '`final_trainer.yaml`',
    ours: '`final_trainer.yaml`',
    status: 'differs',
    note: 'Every key with its value, in our keys; it is a configuration again.',
    check: inRun('final_trainer.yaml', async (path) => {
      const { parseLocalConfig } = await import('@aworld-train/training')
      const { config } = parseLocalConfig(path)
      assert.deepEqual([config.training.steps, config.training.samplesPerPrompt, config.training.learningRate], [2, 4, 2e-3])
    }),
  },
  {
    theirs: '`train_data.parquet`, `test_data.parquet`',
    ours: 'the same, with the columns of verl',
    status: 'works',
    check: inRun('', async (path) => {
      const { loadDataset } = await import('@aworld-train/training')
      assert.deepEqual(
        [
          (await loadDataset(join(path, 'train_data.parquet'))).tasks.length,
          (await loadDataset(join(path, 'test_data.parquet'))).tasks.length,
        ],
        [60, 30],
      )
    }),
  },
  {
    theirs: '`checkpoints/`',
    ours: '`checkpoints/step-000002`, …: Hugging Face folders with the state of the optimiser',
    status: 'works',
    check: inRun('checkpoints', async (path) => {
      const names = await readdir(path)
      assert(names.includes('step-000002'), names.join(', '))
      for (const file of ['config.json', 'model.safetensors', 'tokenizer.json']) await access(join(path, 'step-000002', file))
    }),
  },
  {
    theirs: '`reward_func.py`, `<agent>.py`',
    ours: 'not written',
    status: 'differs',
    note: 'Modules are used where they are.',
    check: inRun('', async (path) =>
      assert.deepEqual(
        (await readdir(path)).filter((name) => /\.(py|ts)$/.test(name)),
        [],
      ),
    ),
  },
  {
    theirs: '—',
    ours: '`report.json`, `run.db`, `segments/`, `events.jsonl`: every episode with its tokens',
    status: 'differs',
    note: '`aworld-train replay` prints an episode, `aworld-train export` writes them as Parquet.',
    check: inRun('', async (path) => {
      for (const file of ['report.json', 'run.db', 'events.jsonl']) assert((await stat(join(path, file))).size > 0, file)
      assert.equal(dirname(join(path, 'report.json')), path.replace(/[\\/]$/, ''))
    }),
  },
]

const hasCommand =
  (name: string, flags: readonly string[] = []) =>
  async () => {
    const row = commands.find((command) => command.name === name)
    assert(row, `There is no command ${name}`)
    const present = toOptions((await row.load()).options).map(({ flags: text }) => text.split(' ')[0])
    for (const flag of flags) assert(present.includes(flag), `${name} has no ${flag}`)
  }

/** Commands of the documents. */
export const commandRows: readonly ParityRow[] = [
  {
    theirs: '`pip install aworld`, `pip install verl==0.5.0`',
    ours: '`npm install aworld-train @aworld-train/cli`',
    status: 'differs',
    note: 'No Python, CUDA or GPU for the engine in the box.',
    check: async () => {
      for (const name of ['aworld-train', 'cli']) {
        const { dependencies, gypfile } = JSON.parse(
          await readFile(new URL(`../../packages/${name}/package.json`, import.meta.url), 'utf8'),
        )
        assert.equal(gypfile, undefined)
        assert(Object.keys(dependencies).length > 0)
      }
    },
  },
  {
    theirs: '`python main.py`',
    ours: '`node main.ts`, or `npx aworld-train train`',
    status: 'works',
    note: '`main.ts` calls `new AgentTrainer(…).train()`; the command runs `aworld-train.config.ts`.',
    check: hasCommand('train', ['--seed', '--steps', '--resume']),
  },
  {
    theirs: '`bash run.sh`',
    ours: '`npx aworld-train train`',
    status: 'differs',
    note: 'Parameters stand in `config`; the same command resumes a run that was stopped.',
    check: hasCommand('train', ['--new', '--run-path', '--json']),
  },
  {
    theirs: 'evaluation with `val_only`, `rollout/` scripts',
    ours: '`npx aworld-train eval`',
    status: 'works',
    note: 'Of any agent with any model, with pass@k and intervals, compared task by task.',
    check: hasCommand('eval', ['--model', '--data', '--reward', '--samples', '--compare']),
  },
  {
    theirs: 'checking a set-up by starting it',
    ours: '`npx aworld-train doctor`',
    status: 'differs',
    note: 'All problems at once and one rollout with its tokens.',
    check: hasCommand('doctor'),
  },
  {
    theirs: '`cp .env_template .env`, then editing',
    ours: '`node --env-file=.env main.ts`, or exported variables',
    status: 'differs',
    note: 'Variables in an MCP configuration, `$NAME` in braces, are filled in; one that is missing is an error.',
    check: async () => assert.equal(typeof process.loadEnvFile, 'function'),
  },
  {
    theirs: '`sh start_env.sh`',
    ours: '`npx aworld-train env start`; in a clone `sh env/start_env.sh`',
    status: 'works',
    note: 'On this machine, without Docker; [in a container](containers.md) with `docker compose -f env/compose.yaml up`. See [Give your agents a tool environment](tool-environment.md).',
    check: ({ folder }) => printsConnection('start_env.sh', folder),
  },
  {
    theirs: '`sh run-local.sh` (MCP on port 8000, VNC on port 5901)',
    ours: '`sh env/run-local.sh` (MCP on port 8000, VNC on port 5901)',
    status: 'differs',
    note: 'Port 5901 answers once a rollout has a desktop (`desktop: true`), one for each.',
    check: ({ folder }) => printsConnection('run-local.sh', folder),
  },
  {
    theirs: '`kubectl`, deploying the environment on Kubernetes',
    ours: '`kubectl apply -k env/kubernetes`',
    status: 'works',
    note: 'A lease is on one pod, whose name its `url` has. See [Run the tool environment in containers](containers.md).',
    check: async () => {
      const file = (name: string) => readFile(join(repository, 'env/kubernetes', name), 'utf8')
      const { resources }: { readonly resources: readonly string[] } = parse(await file('kustomization.yaml'))
      const texts = await Promise.all(resources.map(file))
      const objects = texts.flatMap((text) => parseAllDocuments(text).map((each) => each.toJS()))
      const pod = objects.find(({ kind }) => kind === 'StatefulSet').spec.template.spec
      assert.deepEqual([pod.hostUsers, pod.containers[0].securityContext.procMount], [false, 'Unmasked'])
    },
  },
  {
    theirs: '`ray start --head`, `ray status`, `ray job submit … -- bash run.sh`',
    ours: "the same with the run directory's `run.sh`, against `aworld-train serve`",
    status: 'works',
    note: 'With `--working-dir` too. What describes a Ray of its own, such as `num_cpus`, is left out on a cluster. On a processor Ray needs a GPU in name, `ray start --head --num-gpus 1`, because verl asks for one a rank. See [Train with verl](verl.md).',
    check: async () => {
      const { overrides } = await planVerl(await readVerlConfig({ 'ray_kwargs.ray_init.num_cpus': 32 }, { verl: readWithExcerpt }), {
        ...{ path: '/runs/gaia', name: 'gaia', bridgeDirectory, reward: null, test: null, train: { path: '/t.parquet', rows: 8 } },
        agent: { name: 'gaia', module: '/agent.ts#agent', directory: '/', source: null },
      })
      const ray = (each: readonly string[]) => each.filter((override) => override.includes('num_cpus='))
      assert.deepEqual([ray(overrides).length, ray(withoutOwnRay(overrides)).length], [1, 0])
    },
  },
  {
    theirs: '`AsyncLLMServerManager`: the server with the fewest requests, the same one for a conversation',
    ours: 'the same, for vLLM and SGLang: `urls` of a model of `aworld-train serve`, `createVllmFleet` in a program',
    status: 'differs',
    note: 'With health, draining and updates of weights; the engine in the box is a single one. See [Sample with vLLM or SGLang](engines.md).',
    async check() {
      const inference: Server[] = []
      try {
        for (const _ of [0, 1]) inference.push(await listen(createServer((_request, response) => void response.end('{}'))))
        await using stack = new AsyncDisposableStack()
        const fleet = stack.adopt(await createVllmFleet({ replicas: inference.map(urlOf) }), (each) => each.close())
        const ask = async (conversation: string) => {
          const call = { path: '/v1/completions', body: () => '{}', stream: false, affinity: conversation }
          const { replica } = await fleet.send(call, { onHead() {}, onData: () => true }, AbortSignal.timeout(10_000))
          return replica
        }
        const [one, other] = [await ask('one'), await ask('other')]
        assert.notEqual(one, other)
        assert.deepEqual([await ask('other'), await ask('one'), await ask('one')], [other, one, one])
      } finally {
        for (const server of inference) server.close()
      }
    },
  },
  {
    theirs: 'the Swift adapter: `_engine_infer` runs agents',
    ours: "the same, with `trainEngineName: 'swift'`",
    status: 'works',
    note: 'Every batch is compared with its rollouts, token by token. See [Train with ms-swift](swift.md).',
    async check() {
      const trainer = join(bridgeDirectory, 'aworld_train_bridge/swift/trainer.py')
      assert.match(await readFile(trainer, 'utf8'), /def _engine_infer/)
    },
  },
]
