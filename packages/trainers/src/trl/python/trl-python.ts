import { pinnedPython } from '../../shared/environment/pinned-python.ts'

export const trlPython = pinnedPython({
  name: 'trl',
  title: 'TRL',
  distribution: 'trl',
  tested: '1.16.0',
  oldest: { release: [1, 16], because: 'whose rollout_func and advantages differ' },
  python: { from: [3, 11], below: [3, 14] },
  needed: ['torch', 'transformers', 'datasets', 'accelerate', 'aiohttp'],
  inspected: ['peft', 'vllm', 'flash-attn'],
  shown: ['trl', 'torch', 'transformers', 'peft', 'vllm'],
  requirements: new URL('../../../requirements/trl/', import.meta.url),
  torch: '2.13.0',
  cuda: '13.0',
  says: { gpu: '; a server of vLLM has an environment of its own' },
})
