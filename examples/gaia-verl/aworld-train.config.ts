import { defineTraining } from 'aworld-train'

/** AWorld's GAIA example for Qwen3-4B on GPUs, as `aworld-train train` starts it; `run.sh` and `main.ts` start the same. */
export default defineTraining({
  agent: './agent.yaml',
  rewardFunc: './reward.ts#gaiaRewardFunc',
  trainDataset: './datasets/train.jsonl',
  testDataset: './datasets/test.jsonl',
  model: process.env['MODEL_PATH'] || undefined,
  config: './grpo_trainer.yaml',
  trainEngineName: 'verl',
})
