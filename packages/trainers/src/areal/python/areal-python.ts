import { pinnedPython } from '../../shared/environment/pinned-python.ts'

export const arealPython = pinnedPython({
  name: 'areal',
  title: 'AReaL',
  distribution: 'areal',
  tested: '1.0.4',
  oldest: { release: [1, 0, 4], because: 'whose batches and configuration differ' },
  python: { from: [3, 11], below: [3, 13] },
  needed: ['torch', 'transformers', 'datasets', 'omegaconf', 'aiohttp'],
  inspected: ['litellm', 'vllm', 'sglang', 'flash-attn'],
  shown: ['areal', 'torch', 'transformers', 'vllm', 'sglang'],
  requirements: new URL('../../../requirements/areal/', import.meta.url),
  torch: '2.10.0',
  cuda: '12.8',
  says: { cpu: '; about 7 GB', gpu: ', about 9 GB; a server of vLLM or SGLang has an environment of its own' },
})
