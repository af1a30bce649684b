import { expect, it } from 'vitest'
import { exportedVariables } from './worker-variables.ts'

it('gives workers what a run sets, but no secret, nothing of Ray and Hydra, and nothing that each launch sets', () => {
  const names = ['NCCL_DEBUG', 'TOKENIZERS_PARALLELISM', 'WANDB_MODE']
  const kept = ['WANDB_API_KEY', 'HF_TOKEN', 'DB_PASSWORD', 'aws_secret_access', 'RAY_ADDRESS', 'HYDRA_FULL_ERROR', 'PYTHONPATH']
  expect(exportedVariables(Object.fromEntries([...names, ...kept].map((name) => [name, 'x'])))).toEqual(names)
})

it('leaves out a value that an override in a script cannot hold', () => {
  expect(exportedVariables({ A: "it's", B: 'a\\b', C: 'a\nb', D: 'a b' })).toEqual(['D'])
})
