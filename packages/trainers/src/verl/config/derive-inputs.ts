import { extname, join, resolve } from 'node:path'
import type { DerivationContext } from './derivation.ts'

const rollout = 'actor_rollout_ref.rollout'

/** Keys whose relative paths start from the configuration's folder, wherever verl is started. */
const pathKeys = [
  'trainer.default_local_dir',
  'trainer.rollout_data_dir',
  'trainer.validation_data_dir',
  'trainer.resume_from_path',
  'data.custom_cls.path',
  'reward.custom_reward_function.path',
] as const

export function deriveAbsolutePaths({ config, keys }: DerivationContext): void {
  const absolute = (value: unknown) => (typeof value === 'string' && isLocalPath(value) ? resolve(config.directory, value) : value)
  for (const path of pathKeys) {
    const key = keys.get(path)
    if (key) keys.set(path, { ...key, value: absolute(key.value) })
  }
  for (const path of ['data.train_files', 'data.val_files']) {
    const key = keys.get(path)
    if (key) keys.set(path, { ...key, value: Array.isArray(key.value) ? key.value.map(absolute) : absolute(key.value) })
  }
  const model = keys.get('actor_rollout_ref.model.path')
  // A name on the Hub does not begin with a dot or slash.
  if (typeof model?.value === 'string' && /^\.{1,2}(\/|$)/.test(model.value))
    keys.set(model.path, { ...model, value: resolve(config.directory, model.value) })
}

const isLocalPath = (text: string) => text !== '' && !/^([a-z]+:\/\/|~|\$\{)/i.test(text)

export function deriveFiles({ run, keys, value, fill, override, problems, isSet }: DerivationContext): void {
  for (const [path, data, name] of [
    ['data.train_files', run.train, 'the training data'],
    ['data.val_files', run.test, 'the test data'],
  ] as const) {
    if (!data) continue
    if (isSet(path)) override(path, data.path, `${name} as it was read: columns are checked, and the split is marked`)
    else fill(path, data.path, `${name} of the run`)
  }
  for (const path of ['data.train_files', 'data.val_files']) {
    const unread = [value(path)].flat().find((file) => typeof file === 'string' && !['.parquet', '.json', '.jsonl'].includes(extname(file)))
    if (isSet(path) && unread !== undefined)
      problems.push(
        `${path} names ${unread}, and verl reads .parquet, .json and .jsonl; pass it as the dataset of the trainer, which writes it as Parquet.`,
      )
  }
  if (!isSet('data.train_files')) problems.push('There is no training data; pass trainDataset, or name files in data.train_files.')
  if (!isSet('data.val_files') && isSet('data.train_files')) {
    const none = 'there is no test data'
    if (Number(keys.get('trainer.test_freq')?.value ?? -1) > 0)
      problems.push(
        `trainer.test_freq is ${keys.get('trainer.test_freq')!.value}, and there is no test data; pass testDataset, or set it to -1. Training data never stands in for it.`,
      )
    fill('data.val_files', value('data.train_files'), `${none}: verl opens a file all the same and validates nothing`)
    override('trainer.val_before_train', false, none)
    fill('trainer.test_freq', -1, none)
  }
  if (value('data.prompt_key') !== 'prompt' && run.train && value('data.train_files') === run.train.path)
    override('data.prompt_key', 'prompt', 'the column that is written')
}

export function deriveAgent({ run, override, fill, config, value }: DerivationContext): void {
  override(`${rollout}.agent.default_agent_loop`, run.agent.name, 'the agent in training')
  override(
    `${rollout}.agent.agent_loop_config_path`,
    join(run.path, 'agent.yaml'),
    config.agentFile ? `rendered from ${config.agentFile}` : 'rendered for the bridge',
  )
  fill('data.return_raw_chat', true, 'the messages of a row go to the agent')
  if (Object.keys(config.settings.model.templateArguments).length > 0)
    fill('data.apply_chat_template_kwargs', config.settings.model.templateArguments, 'model.templateArguments: both sides render alike')
  if (value('actor_rollout_ref.model.path') === '~/models/deepseek-llm-7b-chat' && config.settings.model.path !== null)
    fill('actor_rollout_ref.model.path', config.settings.model.path, 'model.path')
}

export function deriveReward({ config, run, fill, override, value, problems }: DerivationContext): void {
  const { native } = config.settings.reward
  const at = 'reward.custom_reward_function'
  if (native) {
    if (run.reward && extname(run.reward.path) === '.py') {
      fill(`${at}.path`, run.reward.path, 'the reward of the run')
      if (run.reward.name !== null) fill(`${at}.name`, run.reward.name, 'the reward of the run')
    } else if (run.reward)
      problems.push(
        `reward.native leaves scoring to verl, which cannot call ${run.reward.path}; name a Python file, or set reward.native to false.`,
      )
    return
  }
  if (value('reward.reward_model.enable') === true) {
    problems.push(
      'reward.reward_model.enable is true, and the reward comes from AWorld Train; set reward.native to true, or leave the reward model out.',
    )
    return
  }
  fill('reward.num_workers', 0, 'every row comes with its reward')
  if (run.reward && extname(run.reward.path) === '.py' && value('reward.num_workers') === 0) {
    override(`${at}.path`, run.reward.path, 'called by AWorld Train; verl loads it in reward workers, of which there are none')
    if (run.reward.name !== null) override(`${at}.name`, run.reward.name, 'called by AWorld Train')
  }
}
