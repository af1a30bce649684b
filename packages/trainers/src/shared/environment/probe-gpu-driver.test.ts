import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseGpuDriver, probeGpuDriver, runsOn } from './probe-gpu-driver.ts'

const banner = (cuda: string) => `+---------------------------------------+
| NVIDIA-SMI 580.65.06    Driver Version: 580.65.06    CUDA Version: ${cuda}  |
|-----------------------------------------+`

describe('parseGpuDriver', () => {
  it('reads GPUs with memory in bytes, and the newest CUDA of the driver', () => {
    const rows = '580.65.06, NVIDIA H100 80GB HBM3, 81559, 81000, 9.0\n580.65.06, NVIDIA H100 80GB HBM3, 81559, 1024, 9.0\n'
    expect(parseGpuDriver(rows, banner('13.0'))).toEqual({
      version: '580.65.06',
      cuda: '13.0',
      gpus: [
        { name: 'NVIDIA H100 80GB HBM3', memoryBytes: 81559 * 2 ** 20, freeBytes: 81000 * 2 ** 20, capability: '9.0' },
        { name: 'NVIDIA H100 80GB HBM3', memoryBytes: 81559 * 2 ** 20, freeBytes: 1024 * 2 ** 20, capability: '9.0' },
      ],
    })
  })

  it('is null without a GPU, and has no memory where the device tells none', () => {
    expect(parseGpuDriver('No devices were found\n', '')).toBeNull()
    expect(parseGpuDriver('580.95, NVIDIA GB10, [N/A], [N/A], 12.1', '')?.gpus).toEqual([
      { name: 'NVIDIA GB10', memoryBytes: 0, freeBytes: 0, capability: '12.1' },
    ])
  })
})

describe('probeGpuDriver', () => {
  it('runs nvidia-smi of PATH; a missing one is no driver, a failing one throws what it says', async () => {
    const bin = await mkdtemp(join(tmpdir(), 'aworld-train-smi-'))
    const env = { PATH: `${bin}:/usr/bin:/bin` }
    try {
      expect(await probeGpuDriver({ env: { PATH: bin } })).toBeNull()
      const row = '570.124.06, NVIDIA A100-SXM4-80GB, 81920, 81400, 8.0'
      const body = `if [ $# = 0 ]; then echo "${banner('12.8').replaceAll('\n', ' ')}"; else echo "${row}"; fi`
      await writeFile(join(bin, 'nvidia-smi'), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
      expect(await probeGpuDriver({ env })).toMatchObject({ version: '570.124.06', cuda: '12.8', gpus: [{ capability: '8.0' }] })
      await writeFile(join(bin, 'nvidia-smi'), '#!/bin/sh\necho "Failed to initialize NVML: Driver/library version mismatch"; exit 18\n')
      await expect(probeGpuDriver({ env })).rejects.toThrow(/ended with 18: Failed to initialize NVML: Driver\/library version mismatch/)
    } finally {
      await rm(bin, { recursive: true, force: true })
    }
  })
})

it.each([
  ['580.65.06', '13.0', true],
  ['579.9', '13.0', false],
  ['525.60.13', '12.9', true],
  ['595.10', '12.4', true],
  ['470.1', '12.1', false],
  ['580.1', '14.0', undefined],
])('driver %s runs CUDA %s: %s', (driver, cuda, expected) => {
  expect(runsOn(driver, cuda)).toBe(expected)
})
