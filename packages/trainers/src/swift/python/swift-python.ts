import { setUpAdvice } from '../../shared/environment/find-python.ts'
import { pinnedPython } from '../../shared/environment/pinned-python.ts'
import { isBelow } from '../../shared/environment/versions.ts'

export const swiftPython = pinnedPython({
  name: 'swift',
  title: 'ms-swift',
  distribution: 'ms-swift',
  tested: '4.6.0',
  oldest: { release: [4, 6], because: 'whose rollouts carry no token ids' },
  python: { from: [3, 11], below: [3, 14] },
  // `msgspec` is missing from ms-swift's own requirements.
  needed: ['torch', 'transformers', 'datasets', 'accelerate', 'trl', 'peft', 'msgspec', 'aiohttp'],
  inspected: ['flash-attn'],
  shown: ['ms-swift', 'trl', 'torch', 'transformers', 'peft'],
  requirements: new URL('../../../requirements/swift/', import.meta.url),
  torch: '2.13.0',
  cuda: '13.0',
  judge({ trl }) {
    if (!trl || isBelow(trl, [1, 0])) return []
    const message = `TRL ${trl} is another trainer's: ms-swift needs one below 1.0, so an environment of its own; ${setUpAdvice('swift')}.`
    return [{ level: 'error', about: 'trl', message }]
  },
})
