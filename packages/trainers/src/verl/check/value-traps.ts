import { valueAt } from '@aworld-train/training'
import type { Trap } from './trap.ts'

const actor = 'actor_rollout_ref.actor'
const rollout = 'actor_rollout_ref.rollout'

/** Keys whose value must be at least one, or null if that is verl's default. */
const counts = [
  'data.train_batch_size',
  'data.max_prompt_length',
  'data.max_response_length',
  `${rollout}.n`,
  `${rollout}.tensor_model_parallel_size`,
  `${rollout}.log_prob_micro_batch_size_per_gpu`,
  `${actor}.ppo_mini_batch_size`,
  `${actor}.ppo_micro_batch_size_per_gpu`,
  `${actor}.ppo_epochs`,
  'trainer.nnodes',
  'trainer.n_gpus_per_node',
  'trainer.total_epochs',
  'trainer.total_training_steps',
]

/** Values that are invalid for their key regardless of other keys. verl reports them late, or computes with them. */
export const valueTraps: readonly Trap[] = [
  {
    name: 'not-a-number',
    severity: 'error',
    check: ({ keys, config, at }) => {
      const wrong = [...keys.keys()].filter((path) => {
        const value = at(path)
        return typeof valueAt(config.verl?.resolved ?? {}, path) === 'number' && !isNumber(value) && value !== null && value !== undefined
      })
      return wrong.length === 0 ? null : wrong.map((path) => `${path} is ${JSON.stringify(at(path))}; it takes a number.`).join('\n')
    },
  },
  {
    name: 'not-a-count',
    severity: 'error',
    check: ({ at }) => {
      const wrong = counts.filter((path) => {
        const value = at(path)
        return isNumber(value) && !(Number.isInteger(Number(value)) && Number(value) >= 1)
      })
      return wrong.length === 0 ? null : wrong.map((path) => `${path} is ${at(path)}; it takes a whole number of at least 1.`).join('\n')
    },
  },
]

/** Whether a value is a number or a text such as `1e-6`, which Hydra reads as a number, YAML 1.1 does not, and verl accepts. */
function isNumber(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value)))
}
