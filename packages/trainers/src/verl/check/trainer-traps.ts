import { watchdogTimeoutMs } from '@aworld-train/training'
import { clusterAddress } from '../config/own-ray.ts'
import type { Trap, TrapContext } from './trap.ts'

const rollout = 'actor_rollout_ref.rollout'

const isV1 = ({ at }: TrapContext) => at('trainer.use_v1') !== false
const loggers = ({ at }: TrapContext): unknown[] => [at('trainer.logger')].flat()
const joinsCluster = ({ at }: TrapContext) => clusterAddress(at('ray_kwargs.ray_init.address')) !== null
const trainerGpus = ({ number }: TrapContext) => number('trainer.nnodes') * number('trainer.n_gpus_per_node')

/** Traps of the set-up of verl, Ray, engines, checkpoints and logging. */
export const trainerTraps: readonly Trap[] = [
  {
    name: 'logger-needs-key',
    severity: 'warning',
    check: (context) => {
      const requirements = [
        ['wandb', 'WANDB_API_KEY'],
        ['swanlab', 'SWANLAB_API_KEY'],
      ] as const
      const missing = requirements.filter(([logger, variable]) => loggers(context).includes(logger) && !process.env[variable])
      return missing.length > 0
        ? `trainer.logger has ${missing[0]![0]}, and ${missing[0]![1]} is not set; without a login verl stops at its start. Set it, or leave the logger out.`
        : null
    },
  },
  {
    name: 'load-format',
    severity: 'error',
    check: ({ at }) =>
      at(`${rollout}.load_format`) === 'dummy' && at(`${rollout}.name`) === 'cpu_hf'
        ? `${rollout}.load_format is dummy, and the engine on CPU starts from the model's files; set it to auto.`
        : null,
  },
  {
    name: 'adapter-load-format',
    severity: 'warning',
    check: ({ at, number }) =>
      at(`${rollout}.load_format`) === 'dummy' && number('actor_rollout_ref.model.lora_rank') > 0
        ? `${rollout}.load_format is dummy with a LoRA adapter: only the adapter is sent to the engine, whose base weights would be random. Set it to safetensors.`
        : null,
  },
  {
    name: 'ray-cpus',
    severity: 'error',
    check: (context) => {
      if (joinsCluster(context)) return null
      const cpus = context.at('ray_kwargs.ray_init.num_cpus')
      // The actors are TaskRunner, reward and agent workers, storage units with their controller, and one for each GPU and replica.
      const actors =
        3 +
        context.number('reward.num_workers') +
        context.number(`${rollout}.agent.num_workers`) +
        context.number('transfer_queue.backend.SimpleStorage.num_data_storage_units') +
        trainerGpus(context)
      return typeof cpus === 'number' && cpus < actors
        ? `ray_kwargs.ray_init.num_cpus is ${cpus}, and about ${actors} actors are started; Ray waits for ever for the rest. It is a number of its own, not of the machine: set it to ${Math.max(16, 2 * actors)}.`
        : null
    },
  },
  {
    name: 'ray-gpus-on-cpu',
    severity: 'error',
    check: (context) => {
      if (context.at('trainer.device') !== 'cpu' || joinsCluster(context)) return null
      const gpus = context.at('ray_kwargs.ray_init.num_gpus')
      const needed = trainerGpus(context)
      return typeof gpus === 'number' && gpus >= needed
        ? null
        : `trainer.device is cpu, and Ray is asked for ${needed} logical GPUs that it does not have; set smoke to true, which sets all that a run on the processor needs, or ray_kwargs.ray_init.num_gpus to ${needed}.`
    },
  },
  {
    name: 'validation-every-step',
    severity: 'warning',
    check: ({ number, run }) =>
      number('trainer.test_freq') === 1 && (run.test?.rows ?? 0) > 500
        ? `trainer.test_freq is 1 with ${run.test!.rows} test rows: the whole set is done after every step. Set it to 10.`
        : null,
  },
  {
    name: 'no-checkpoint',
    severity: 'warning',
    check: ({ number, at }) =>
      number('trainer.save_freq') <= 0 && at('trainer.val_only') !== true
        ? 'trainer.save_freq is -1: verl keeps no checkpoint, so that a run cannot be resumed and leaves no model. Set it to the steps between two, such as 20; the last step is kept then too.'
        : null,
  },
  {
    name: 'last-validation',
    severity: 'warning',
    check: ({ number, run }) =>
      run.test && number('trainer.test_freq') <= 0
        ? 'trainer.test_freq is not set: verl does not validate after the last step. Set it to the steps between two validations.'
        : null,
  },
  {
    name: 'tensor-parallel-does-not-divide',
    severity: 'error',
    check: (context) => {
      const { at, number } = context
      const size = number(`${rollout}.tensor_model_parallel_size`) * Math.max(1, number(`${rollout}.data_parallel_size`))
      const separate = at('trainer.v1.trainer_mode') === 'separate_async'
      const gpus = separate ? number(`${rollout}.nnodes`) * number(`${rollout}.n_gpus_per_node`) : trainerGpus(context)
      return gpus > 0 && gpus % size !== 0
        ? `${rollout}.tensor_model_parallel_size is ${number(`${rollout}.tensor_model_parallel_size`)}, which does not divide the ${gpus} GPUs that sample; no replica can be placed. Make it a divisor of ${gpus}.`
        : null
    },
  },
  {
    name: 'separate-async-pool',
    severity: 'error',
    check: ({ at, number }) =>
      at('trainer.v1.trainer_mode') === 'separate_async' && number(`${rollout}.nnodes`) < 1
        ? `trainer.v1.trainer_mode is separate_async, and ${rollout}.nnodes is 0: there are no GPUs for the replicas. Set layout, or nnodes and n_gpus_per_node.`
        : null,
  },
  {
    name: 'hybrid-engine-off',
    severity: 'error',
    check: ({ at }) =>
      at('actor_rollout_ref.hybrid_engine') === false && at('trainer.v1.trainer_mode') !== 'separate_async'
        ? 'actor_rollout_ref.hybrid_engine is false, which only separate_async can do; leave it out.'
        : null,
  },
  {
    name: 'agent-workers',
    severity: 'warning',
    check: (context) =>
      !isV1(context) &&
      context.number(`${rollout}.agent.num_workers`) > context.number('data.train_batch_size') * context.number(`${rollout}.n`)
        ? `${rollout}.agent.num_workers is ${context.number(`${rollout}.agent.num_workers`)}, more than a batch has rollouts; the trainer before V1 cannot cut a batch into so many parts. Lower it.`
        : null,
  },
  {
    name: 'own-agent-column',
    severity: 'warning',
    check: ({ config, run }) =>
      config.agentName !== null && config.agentName !== run.agent.name
        ? `${rollout}.agent.default_agent_loop is "${config.agentName}", and the agent in training is "${run.agent.name}"; the latter is used.`
        : null,
  },
  {
    name: 'default-model',
    severity: 'error',
    check: ({ at }) =>
      at('actor_rollout_ref.model.path') === '~/models/deepseek-llm-7b-chat'
        ? "actor_rollout_ref.model.path is verl's placeholder; set it to a model folder or a name at the hub."
        : null,
  },
  {
    name: 'custom-template',
    severity: 'warning',
    check: ({ at }) =>
      typeof at('actor_rollout_ref.model.custom_chat_template') === 'string'
        ? 'actor_rollout_ref.model.custom_chat_template is set; it has to be the chat_template of the model folder too, or the start-up check of the channel refuses it.'
        : null,
  },
  {
    name: 'watchdog-before-rollout',
    severity: 'warning',
    check: ({ config: { settings } }) => {
      const longest = settings.limits.timeoutMs ?? settings.rolloutTimeoutMs
      const silence = watchdogTimeoutMs(settings)
      return silence <= longest
        ? `watchdogTimeoutMs is ${silence}, and a rollout may take ${longest} ms without a word: verl would be ended in the middle of one. Set it higher, or leave it out.`
        : null
    },
  },
]
