import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  Agent,
  AgentTrainer,
  type AgentTrainerOptions,
  gaiaRewardFunc,
  loadDataset,
  PythonTrainerProcessor,
  questionScorer,
  TrainError,
  TrainerProcessor,
} from 'aworld-train'
import type { ParityRow } from './parity-row.ts'

const agent = new Agent({ name: 'a' })
const rewardFunc = () => 1
const rows = [{ prompt: 'q', answer: 'a' }]
const options: AgentTrainerOptions = { agent, trainEngineName: 'local' }

const fails = (code: string, message: RegExp) => (error: unknown) => {
  assert(error instanceof TrainError, String(error))
  assert.equal(error.code, code)
  assert.match(error.message, message)
  return true
}

/** Notes the order of calls and fails where it is told to. */
function createRecorder(failing: readonly string[] = []) {
  const calls: [name: string, ...values: unknown[]][] = []
  const call = (name: string, ...values: unknown[]) => {
    calls.push([name, ...values])
    if (failing.includes(name)) throw new Error(`${name} failed`)
    return name
  }
  class Recorder extends TrainerProcessor {
    override train = () => call('train')
    override inference = (dataset: unknown) => call('inference', dataset)
    override checkAgent = (value: unknown) => call('checkAgent', value)
    override checkDataset = (train?: unknown, test?: unknown) => call('checkDataset', train, test)
    override checkReward = (value?: unknown) => call('checkReward', value)
    override checkConfig = (value?: unknown) => call('checkConfig', value)
    override markInitialized() {
      call('markInitialized')
      super.markInitialized()
    }
  }
  return { Recorder, calls, names: () => calls.map(([name]) => name) }
}

async function registered(recorder: ReturnType<typeof createRecorder>, use: () => Promise<void>): Promise<void> {
  AgentTrainer.registerProcessor('parity-recorder', recorder.Recorder)
  try {
    await use()
  } finally {
    AgentTrainer.unregisterProcessor('parity-recorder')
  }
}

/** AgentTrainer, its attributes and defaults. */
export const trainerRows: readonly ParityRow[] = [
  {
    theirs: '`from train.trainer.agent_trainer import AgentTrainer`',
    ours: "`import { AgentTrainer } from 'aworld-train'`",
    status: 'works',
    check: () => assert.equal(typeof AgentTrainer, 'function'),
  },
  {
    theirs: '`AgentTrainer(agent=…, config=…, reward_func=…, train_dataset=…, test_dataset=…, run_path=…, train_engine_name=…)`',
    ours: '`new AgentTrainer({ agent, config, rewardFunc, trainDataset, testDataset, runPath, trainEngineName })`',
    status: 'works',
    note: 'The snake_case spellings are taken too, and `null` where Python has `None`. An option that does not exist is an error with a suggestion.',
    check() {
      const trainer = new AgentTrainer({
        agent,
        reward_func: rewardFunc,
        train_dataset: rows,
        test_dataset: null,
        run_path: 'out',
        train_engine_name: 'local',
      })
      assert.deepEqual(
        [trainer.rewardFunc, trainer.trainDataset, trainer.testDataset, trainer.runPath, trainer.trainEngineName],
        [rewardFunc, rows, undefined, 'out', 'local'],
      )
      assert.throws(
        () => new AgentTrainer({ ...options, rewardFunction: rewardFunc } as never),
        fails('CONFIG_INVALID', /"rewardFunction"\. Did you mean "rewardFunc"/),
      )
    },
  },
  {
    theirs: 'attribute `agent`: instance or path of a file',
    ours: '`agent`: `Agent`, `Swarm`, a function, an `AworldAgentLoop`, or `./agent.ts#name`, `./agent.yaml`',
    status: 'works',
    async check({ project }) {
      const trainer = await AgentTrainer.create(project)
      assert.equal(trainer.agent, './agent.yaml')
      assert.equal(new AgentTrainer(options).agent, agent)
    },
  },
  {
    theirs: 'attributes `train_dataset`, `test_dataset`: path or `datasets.Dataset`',
    ours: '`trainDataset`, `testDataset`: path (`.parquet .csv .jsonl .json`), rows, or an async iterable',
    status: 'differs',
    note: 'A Hugging Face dataset of Python is read from the folder that `save_to_disk` wrote. A test set that is missing is never replaced by the training set.',
    async check({ folder }) {
      const path = join(folder, 'tasks.csv')
      await writeFile(path, 'prompt,answer\nIs 2 even?,yes\n')
      const { tasks, answers } = await loadDataset(path)
      assert.equal(tasks[0]?.input, 'Is 2 even?')
      assert.equal(answers.get(tasks[0]!.id)?.groundTruth, 'yes')
      async function* stream() {
        yield* rows
      }
      assert.equal((await loadDataset(stream())).tasks.length, 1)
      assert.equal(new AgentTrainer({ ...options, trainDataset: rows }).testDataset, undefined)
    },
  },
  {
    theirs: 'attribute `reward_func`: function or path',
    ours: '`rewardFunc`: function, `defineReward(…)`, or `./reward.ts#name`',
    status: 'works',
    check: () => assert.equal(new AgentTrainer({ ...options, rewardFunc }).rewardFunc, rewardFunc),
  },
  {
    theirs: 'attribute `config`: path of YAML or an object',
    ours: '`config`: path of YAML or JSON, or an object',
    status: 'works',
    note: "Keys of ours and of verl's configuration, together if you like.",
    async check({ project }) {
      const config = { model: { warmUp: './warm-up.ts#warmUp' }, trainer: { total_training_steps: 3 } }
      const trainer = await AgentTrainer.create({ ...project, config })
      assert.equal(trainer.config, config)
    },
  },
  {
    theirs: "attribute `train_engine_name`, default `'verl'`",
    ours: "`trainEngineName`, default `'verl'`",
    status: 'works',
    note: "The engine in the box is `'local'`.",
    check() {
      const trainer = new AgentTrainer({ agent })
      assert.equal(trainer.trainEngineName, 'verl')
      assert(trainer.trainProcessor instanceof PythonTrainerProcessor)
      assert.equal(trainer.trainProcessor.trainer.name, 'verl')
    },
  },
  {
    theirs: "attribute `run_path`, default `'runs'`",
    ours: "`runPath`, default `'runs'`",
    status: 'differs',
    note: 'Every run gets a folder of its own in it, `runs/<agent>-<date>`.',
    async check({ folder, trained }) {
      assert.equal(new AgentTrainer(options).runPath, 'runs')
      assert.match((await trained()).report.path, new RegExp(`^${folder.replaceAll('\\', '\\\\')}.parity_agent-\\d{8}-\\d{6}`))
    },
  },
  {
    theirs: 'attribute `train_processor`',
    ours: '`trainProcessor`',
    status: 'works',
    check: () => assert(new AgentTrainer(options).trainProcessor instanceof TrainerProcessor),
  },
  {
    theirs: 'an empty agent fails in the constructor (`AssertionError`)',
    ours: '`TrainError` with code `AGENT_INVALID`',
    status: 'works',
    check: () => {
      for (const empty of [undefined, null, ''])
        assert.throws(() => new AgentTrainer({ agent: empty, trainEngineName: 'local' } as never), fails('AGENT_INVALID', /agent is empty/))
    },
  },
  {
    theirs: 'an unknown engine fails in the constructor (`ValueError`)',
    ours: '`TrainError` with code `TRAINER_UNKNOWN`, naming the engines there are',
    status: 'works',
    check: () =>
      assert.throws(
        () => new AgentTrainer({ agent, trainEngineName: 'nope' }),
        fails('TRAINER_UNKNOWN', /"nope" \(known: "verl", .*"local"/),
      ),
  },
  {
    theirs: 'order of validation: agent, dataset, reward, config, `mark_initialized()`',
    ours: '`await trainer.validate()`: `checkAgent`, `checkDataset`, `checkReward`, `checkConfig`, `markInitialized`',
    status: 'works',
    check: async () => {
      const recorder = createRecorder()
      await registered(recorder, async () => {
        const config = { steps: 1 }
        await AgentTrainer.create({
          agent,
          trainDataset: rows,
          testDataset: 'test.csv',
          rewardFunc,
          config,
          trainEngineName: 'parity-recorder',
        })
        assert.deepEqual(recorder.calls, [
          ['checkAgent', agent],
          ['checkDataset', rows, 'test.csv'],
          ['checkReward', rewardFunc],
          ['checkConfig', config],
          ['markInitialized'],
        ])
      })
    },
  },
  {
    theirs: 'checks run in the constructor and stop at the first problem',
    ours: '`new AgentTrainer` checks agent and engine; `validate()`, `AgentTrainer.create()` or `train()` run the checks and name every problem at once',
    status: 'differs',
    note: 'Checks are asynchronous and write nothing.',
    check: async () => {
      const recorder = createRecorder(['checkAgent', 'checkConfig'])
      await registered(recorder, async () => {
        const trainer = new AgentTrainer({ agent, trainEngineName: 'parity-recorder' })
        assert.deepEqual(recorder.names(), [])
        await assert.rejects(trainer.train(), fails('CONFIG_INVALID', /checkAgent failed[\s\S]*checkConfig failed/))
        assert.deepEqual(recorder.names(), ['checkAgent', 'checkDataset', 'checkReward', 'checkConfig'])
        assert.equal(trainer.trainProcessor.initialized, false)
      })
    },
  },
  {
    theirs: '`trainer.train()`, `ValueError` where not initialised',
    ours: '`await trainer.train()`',
    status: 'differs',
    note: 'Validates by itself where that was not done, and resolves to the report: curve, reward before and after, ledger, path. The processor alone says `TRAINER_NOT_INITIALIZED`.',
    check: async ({ project, trained }) => {
      const { report } = await trained()
      assert.equal(report.status, 'finished')
      assert.equal(report.curve.length, 2)
      await assert.rejects(async () => new AgentTrainer(project).trainProcessor.train(), fails('TRAINER_NOT_INITIALIZED', /validate/))
    },
  },
  {
    theirs: '`await trainer.inference(dataset)`',
    ours: '`await trainer.inference(dataset)`',
    status: 'differs',
    note: "Rewards, pass@k and a row for every rollout; the test set where no dataset is given. After `train()` it is about the weights that training left. For `'local'` and `'tinker'`; what a framework of Python trained is evaluated in its run, and after `aworld-train export` with `'local'`.",
    check: async ({ project, trained }) => {
      const { report } = await trained()
      const trainer = new AgentTrainer({ ...project, model: join(report.path, report.checkpoints.at(-1)!), samples: 2 })
      const { rollouts, results } = await trainer.inference([{ prompt: 'Is 12 even?', answer: 'yes' }])
      assert.equal(rollouts, 2)
      assert(results.every(({ reward }) => reward === 0 || reward === 1))
      assert.equal(new AgentTrainer({ ...project, trainEngineName: 'verl' }).trainProcessor.inference, undefined)
    },
  },
  {
    theirs: '`AgentTrainer.register_processor(train_engine_name, train_type)`',
    ours: '`AgentTrainer.registerProcessor(trainEngineName, trainType)`',
    status: 'works',
    note: 'A name that is taken is an error, as there. See [Train in a way of your own](custom-trainer.md).',
    check: async () => {
      const recorder = createRecorder()
      await registered(recorder, async () => {
        assert.throws(
          () => AgentTrainer.registerProcessor('parity-recorder', recorder.Recorder),
          fails('CONFIG_INVALID', /registered already/),
        )
        assert.throws(() => AgentTrainer.registerProcessor('parity-map', Map as never), fails('CONFIG_INVALID', /extends TrainerProcessor/))
        assert.equal(await new AgentTrainer({ agent, trainEngineName: 'parity-recorder' }).train(), 'train')
      })
    },
  },
  {
    theirs: '`AgentTrainer.unregister_processor(train_engine_name)`',
    ours: '`AgentTrainer.unregisterProcessor(trainEngineName)`',
    status: 'works',
    check() {
      AgentTrainer.registerProcessor('parity-gone', createRecorder().Recorder)
      assert.equal(AgentTrainer.unregisterProcessor('parity-gone'), true)
      assert.equal(AgentTrainer.unregisterProcessor('parity-gone'), false)
      assert.throws(() => new AgentTrainer({ agent, trainEngineName: 'parity-gone' }), fails('TRAINER_UNKNOWN', /parity-gone/))
    },
  },
  {
    theirs:
      '`TrainerProcessor`: `__init__(run_path)`, `train`, `inference`, `check_agent`, `check_dataset`, `check_reward`, `check_config`, `initialized`, `mark_initialized`',
    ours: '`TrainerProcessor`: `constructor(runPath)`, `train`, `inference`, `checkAgent`, `checkDataset`, `checkReward`, `checkConfig`, `initialized`, `markInitialized`',
    status: 'works',
    note: 'The class is abstract for the compiler; `inference` may be left out.',
    check: async () => {
      const recorder = createRecorder()
      const processor: TrainerProcessor = new recorder.Recorder('out')
      assert.equal(processor.runPath, 'out')
      assert.equal(processor.initialized, false)
      processor.markInitialized()
      assert.equal(processor.initialized, true)
      await registered(recorder, async () => {
        assert.equal(await new AgentTrainer({ agent, trainEngineName: 'parity-recorder' }).inference(rows as never), 'inference')
      })
    },
  },
  {
    theirs: 'engines `areal`, `swift`',
    ours: 'the same names',
    status: 'works',
    note: 'Beside them stand `trl`, `tinker` and `local`.',
    check() {
      for (const name of ['areal', 'swift']) {
        const trainer = new AgentTrainer({ agent, trainEngineName: name })
        assert(trainer.trainProcessor instanceof PythonTrainerProcessor)
        assert.equal(trainer.trainProcessor.trainer.name, name)
      }
    },
  },
  {
    theirs: '`from aworld.logs.util import logger`',
    ours: '`onEvent`, and `events.jsonl` of the run',
    status: 'differs',
    note: 'Nothing is logged to the terminal by the library; the command line shows progress.',
    check: async ({ trained }) => {
      const { report } = await trained()
      const events = (await readFile(join(report.path, 'events.jsonl'), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).type)
      for (const type of ['run-start', 'rollout-end', 'step-end', 'run-end']) assert(events.includes(type), type)
    },
  },
]

/** Reward functions and data. */
export const rewardRows: readonly ParityRow[] = [
  {
    theirs: '`gaia_reward_func(data_source, solution_str, ground_truth, extra_info=None)`',
    ours: '`gaiaRewardFunc(dataSource, solutionStr, groundTruth, extraInfo?)`',
    status: 'works',
    note: 'Answers as the Python text does, compared on thousands of recorded cases.',
    check() {
      assert.equal(gaiaRewardFunc('gaia', 'so <answer> $1,000 </answer>', '1000'), 1)
      assert.equal(gaiaRewardFunc('gaia', '1000', '1000'), 0)
      assert.equal(gaiaRewardFunc('gaia', '<answer>a; 2</answer>', 'a;2.0', {}), 1)
    },
  },
  {
    theirs: '`question_scorer(model_answer, ground_truth)`, `normalize_number_str`, `normalize_str`, `split_string`',
    ours: '`questionScorer(modelAnswer, groundTruth)`; the three helpers in `@aworld-train/training`',
    status: 'works',
    check: async () => {
      const { normalizeNumberStr, normalizeStr, splitString } = await import('@aworld-train/training')
      assert.equal(questionScorer('Sea gull!', 'seagull'), true)
      assert.equal(questionScorer(null, 'None'), true)
      assert.equal(normalizeNumberStr('abc'), Number.POSITIVE_INFINITY)
      assert.equal(normalizeStr('A b.'), 'ab')
      assert.deepEqual(splitString('a,b;c'), ['a', 'b', 'c'])
    },
  },
  {
    theirs: '`solution_str`: the whole decoded response, tool output included',
    ours: '`solutionStr`: the final answer of the agent',
    status: 'differs',
    note: 'Tool text cannot earn a reward. `createReward(…, { rewardInput: "full-response" })` of `@aworld-train/training` gives the other view.',
    check: async ({ trained, project }) => {
      const { report } = await trained()
      const seen: string[] = []
      const reward = (_source: string, solution: string) => {
        seen.push(solution)
        return 0
      }
      const trainer = new AgentTrainer({ ...project, rewardFunc: reward, model: join(report.path, report.checkpoints.at(-1)!) })
      const { results } = await trainer.inference([{ prompt: 'Is 12 even?', answer: 'yes' }])
      assert.deepEqual(seen, [results[0]?.answer])
    },
  },
  {
    theirs: '`reward_func=None`',
    ours: 'leave `rewardFunc` out and name `custom_reward_function.path` (ours: `reward.path`) in the configuration',
    status: 'differs',
    note: 'No reward at all is an error.',
    check: async ({ project }) => {
      const { rewardFunc: _, ...rest } = project
      await assert.rejects(AgentTrainer.create(rest), fails('CONFIG_INVALID', /There is no reward/))
    },
  },
  {
    theirs: '`reward_fn_file_path`, `reward_fn_name`',
    ours: '`./reward.ts#name`, or `custom_reward_function.path` and `.name`',
    status: 'works',
    note: 'A missing export is found by `validate()`; the function runs in a worker with limits of time and memory.',
    check: async ({ project }) => {
      const { rewardFunc: _, ...rest } = project
      const model = { warmUp: './warm-up.ts#warmUp' }
      await AgentTrainer.create({ ...rest, config: { model, custom_reward_function: { path: './reward.ts', name: 'exactAnswer' } } })
      await assert.rejects(
        AgentTrainer.create({ ...project, rewardFunc: './reward.ts#exactAnswr' }),
        fails('MODULE_INVALID', /exactAnswer/),
      )
    },
  },
  {
    theirs: 'a reward returns a float in [0, 1], or a dict with `score`',
    ours: 'a finite number, or `{ reward, scores, agents }`',
    status: 'differs',
    note: 'Any finite number; anything else fails the episode with `REWARD_INVALID`.',
    check: async ({ trained, project }) => {
      const { report } = await trained()
      const at = { model: join(report.path, report.checkpoints.at(-1)!) }
      const score = async (reward: () => unknown) =>
        (await new AgentTrainer({ ...project, ...at, rewardFunc: reward as never }).inference([{ prompt: 'Is 12 even?', answer: 'yes' }]))
          .results[0]?.reward
      assert.equal(await score(() => -2.5), -2.5)
      assert.equal(await score(() => ({ reward: 0.5, scores: { format: 1 } })), 0.5)
      await assert.rejects(
        score(() => ({ score: 1 })),
        { code: 'EVALUATION_FAILED', message: /REWARD_INVALID/ },
      )
    },
  },
  {
    theirs: 'columns `data_source`, `prompt` (messages), `ability`, `reward_model.ground_truth`, `extra_info`, `agent_name`',
    ours: 'the same columns are read; `prompt` and `answer` are enough',
    status: 'works',
    note: 'The agent sees the prompt, files, and what stands in a column `data`; the reward gets everything. See [Give it your tasks](datasets.md).',
    check: async () => {
      const row = {
        data_source: 'gaia',
        prompt: [{ role: 'user', content: 'How many?' }],
        ability: 'search',
        reward_model: { style: 'rule', ground_truth: '3' },
        extra_info: { split: 'train', index: 7 },
        agent_name: 'gaia_agent',
      }
      const { tasks, answers, problems } = await loadDataset([row])
      assert.deepEqual(problems, [])
      assert.deepEqual(tasks[0]?.input, [{ role: 'user', content: 'How many?' }])
      assert.equal(tasks[0]?.dataSource, 'gaia')
      assert.deepEqual(tasks[0]?.extraInfo, { ability: 'search', split: 'train', index: 7 })
      assert.deepEqual(tasks[0]?.data, {})
      assert.equal(answers.get(tasks[0]!.id)?.groundTruth, '3')
    },
  },
  {
    theirs: '`datasets/train.parquet`, `datasets/test.parquet` of `create_dataset.py`',
    ours: 'read as they are',
    status: 'works',
    check: async ({ trained }) => {
      const { report } = await trained()
      const { tasks, problems } = await loadDataset(join(report.path, 'train_data.parquet'))
      assert.deepEqual(problems, [])
      assert.equal(tasks.length, 60)
    },
  },
]
