import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scoringContext } from '@aworld-train/core'
import { readVerlConfig, type VerlConfig } from '@aworld-train/trainers/verl'
import { createReward, type RewardSource } from '@aworld-train/training'
import { AworldAgentLoop, loadAgent } from 'aworld-train'
import { readWithExcerpt } from '../../packages/trainers/src/verl/testing/excerpt-of-verl.ts'
import { publishedOverrides, publishedRun } from '../../packages/trainers/src/verl/testing/published-overrides.ts'
import { NamelessSwarmLoop, SwarmLoop } from '../support/published-swarm.ts'
import type { ParityRow } from './parity-row.ts'

/** What verl gets of AWorld Train's own run.sh, whatever variables this process has. */
const readRun = (): Promise<VerlConfig> =>
  readVerlConfig(publishedOverrides(), { verl: readWithExcerpt, baseDirectory: import.meta.dirname })

const value = ({ keys }: VerlConfig, path: string) => keys.get(path)?.value

async function scoreOf(source: RewardSource, baseDirectory: string, answer: string, groundTruth: unknown) {
  const reward = await createReward(source, { baseDirectory })
  const task = { version: 1 as const, id: 't', hash: '', input: 'q', data: {}, dataSource: 'gaia', extraInfo: {} }
  const episode = { answer, messages: [], toolCalls: [], trajectories: [] }
  try {
    return await reward.score(
      { task, episode: episode as never, answer: { version: 1, taskId: 't', groundTruth } },
      scoringContext(AbortSignal.timeout(30_000)),
    )
  } finally {
    await reward.close()
  }
}

/** What belongs to verl as the trainer: its reward in Python, its swarm, its script. */
export const verlRows: readonly ParityRow[] = [
  {
    theirs: '`reward_fn_file_path=…/gaia_reward_function.py`, `reward_fn_name=gaia_reward_func`',
    ours: "`rewardFunc: './gaia_reward_function.py#gaia_reward_func'`, or the two keys",
    status: 'works',
    note: 'A process of its own, with any trainer; a float, or a dict with `score`, as verl reads it. A name that is not there is refused with those that are.',
    async check({ folder }) {
      const file = join(folder, 'gaia_reward_function.py')
      await writeFile(
        file,
        'def gaia_reward_func(data_source, solution_str, ground_truth, extra_info=None):\n    return {"score": float(solution_str == ground_truth), "length": len(solution_str)}\n',
      )
      assert.deepEqual(await scoreOf('./gaia_reward_function.py#gaia_reward_func', folder, '79', '79'), {
        reward: 1,
        scores: { length: 2 },
      })
      await assert.rejects(createReward(`${file}#gaia_reward`), /has no function "gaia_reward"\. .*It has "gaia_reward_func"/)
    },
  },
  {
    theirs: 'the swarm of the README: `agent_to_be_train`, `plan_agent`, `exe_agent`, `sum_agent`',
    ours: 'the same: the first is trained, three ask services of their own',
    status: 'works',
    note: 'Agents without a name get one.',
    async check({ folder }) {
      for (const name of ['PLAN', 'EXE', 'SUM']) process.env[`${name}_LLM_BASE_URL`] ??= 'http://127.0.0.1:9/v1'
      for (const Loop of [SwarmLoop, NamelessSwarmLoop]) {
        assert(Loop.prototype instanceof AworldAgentLoop)
        const { program } = await loadAgent(Loop, folder)
        assert.deepEqual(
          program.agents.map(({ trainable }) => trainable),
          [true, false, false, false],
        )
      }
    },
  },
  {
    theirs: '`agent.yaml` of the run: a class that was generated for verl to import',
    ours: 'the loop of the bridge, with `module: ./custom-agent-loop.ts#GaiaAgentLoop`',
    status: 'differs',
    note: 'Either is read as an agent. Nothing of your code, and no key in it, is copied into the run.',
    async check({ folder }) {
      const module = fileURLToPath(new URL('gaia-agent-loop.ts', import.meta.url))
      const path = join(folder, 'rendered-agent.yaml')
      await mkdir(folder, { recursive: true })
      await writeFile(
        path,
        `- name: gaia_agent\n  _target_: aworld_train_bridge.verl.agent_loop.AworldTrainAgentLoop\n  module: ${module}\n`,
      )
      const { program } = await loadAgent(path, folder)
      assert.deepEqual(
        program.agents.map(({ name }) => name),
        ['gaia_super_agent'],
      )
    },
  },
  {
    theirs: "`run.sh` of the guide as verl's configuration",
    ours: 'its overrides: `train` and `doctor` print the command that writes them down',
    status: 'differs',
    note: 'A script is not run to be read. Add the two blanks that are missing before a line break there, and set the variables that it exports.',
    async check() {
      const [problem = ''] = (await readVerlConfig(publishedRun)).problems
      assert.match(problem, /this is a script.*bash -c .*overrides\.txt/s)
      const config = await readRun()
      assert.deepEqual(config.problems, [])
      assert.deepEqual(
        ['actor_rollout_ref.rollout.name', 'actor_rollout_ref.rollout.n', 'actor_rollout_ref.actor.ppo_max_token_len_per_gpu'].map((path) =>
          value(config, path),
        ),
        ['vllm', 1, 12_288],
      )
    },
  },
  {
    theirs: '`custom_reward_function.path`, `custom_reward_function.name` under verl',
    ours: 'the same keys',
    status: 'works',
    note: 'verl 0.9 takes them and reads nothing of them; here they are translated, and the reward is called by us.',
    async check() {
      const { settings, notes } = await readRun()
      assert.equal(settings.reward.name, 'gaia_reward_func')
      assert.match(settings.reward.path ?? '', /gaia_reward_function\.py$/)
      assert(notes.some((note) => /custom_reward_function\.path is reward\.custom_reward_function\.path since verl/.test(note)))
    },
  },
  {
    theirs: '`actor_rollout_ref.rollout.mode=async` under verl',
    ours: 'taken: verl has no other mode since 0.7',
    status: 'works',
    note: 'Where rollouts are sampled is `layout`: hybrid, colocated or standalone. See [Train with verl](verl.md).',
    async check() {
      const config = await readRun()
      assert.equal(value(config, 'actor_rollout_ref.rollout.mode'), undefined)
      const { settings, problems } = await readVerlConfig({ layout: { mode: 'standalone', schedule: 'separate_async' } })
      assert.deepEqual([settings.layout?.mode, problems], ['standalone', []])
    },
  },
  {
    theirs: '`max_turns=8` under verl',
    ours: 'the same; the rollout service counts turns',
    status: 'works',
    check: async () => assert.equal((await readRun()).settings.limits.maxTurns, 8),
  },
  {
    theirs: '`tool_config_path`, `multi_turn.format` under verl',
    ours: 'taken; where dropping one could surprise, it is said once',
    status: 'differs',
    note: "verl's own tool loop reads them. Tool calls are parsed by what the model's template writes.",
    check: async () =>
      assert((await readRun()).notes.some((note) => /multi_turn\.tool_config_path is read by verl's own tool_agent/.test(note))),
  },
  {
    theirs: 'the example `train_gaia_with_aworld_verl`',
    ours: '`examples/gaia-verl`',
    status: 'differs',
    note: 'The prompt asks for `<answer>`, groups have eight rollouts, and prompt and response have room; each change is marked there.',
    async check() {
      const example = new URL('../../examples/gaia-verl/', import.meta.url)
      const yaml = fileURLToPath(new URL('grpo_trainer.yaml', example))
      const config = await readVerlConfig(yaml)
      assert.deepEqual(config.problems, [])
      assert.equal(value(config, 'actor_rollout_ref.rollout.n'), 8)
      assert.equal(config.settings.limits.maxTurns, 8)
      assert.match(await readFile(new URL('prompt.ts', example), 'utf8'), /<answer>…<\/answer>/)
      const { program } = await loadAgent('./agent.yaml', fileURLToPath(example))
      assert.deepEqual(
        program.agents.map(({ name, trainable }) => [name, trainable]),
        [['gaia_super_agent', true]],
      )
    },
  },
]
