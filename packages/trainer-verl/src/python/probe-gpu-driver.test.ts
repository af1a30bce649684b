import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { planSetup } from './plan-setup.ts'
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

describe('planSetup', () => {
  const driver = (version: string) => ({ version, cuda: null, gpus: [{ name: 'H100', memoryBytes: 1, freeBytes: 1, capability: '9.0' }] })

  it.each([
    ['auto', null, 'verl-0.9.1.txt', ['--no-deps']],
    ['cpu', '580.65.06', 'verl-0.9.1.txt', ['--no-deps']],
    ['auto', '580.65.06', 'verl-0.9.1-vllm.txt', ['--no-deps']],
    ['auto', '595.1', 'verl-0.9.1-vllm.txt', ['--no-deps']],
    ['13.0', null, 'verl-0.9.1-vllm.txt', ['--no-deps']],
    ['cu130', '580.65.06', 'verl-0.9.1-vllm.txt', ['--no-deps']],
    ['12.9', '570.1', 'verl-0.9.1-vllm.in', ['--torch-backend', 'cu129']],
    ['cu128', null, 'verl-0.9.1-vllm.in', ['--torch-backend', 'cu128']],
  ])('--torch %s with driver %s installs %s', (torch, version, requirements, args) => {
    expect(planSetup({ torch, driver: version === null ? null : driver(version) })).toMatchObject({ requirements, arguments: args })
  })

  it.each([
    ['auto', '570.124', 'TRAINER_ENVIRONMENT', /driver 570\.124 is too old for CUDA 13\.0.*580.*--torch 12\.9.*--torch cpu/],
    ['13.0', '570.124', 'TRAINER_ENVIRONMENT', /CUDA 13\.0 needs an NVIDIA driver 580/],
    ['12.9', '470.1', 'TRAINER_ENVIRONMENT', /CUDA 12\.9 needs an NVIDIA driver 525/],
    ['gpu', null, 'CONFIG_INVALID', /--torch gpu is not known/],
    ['2.13.0', null, 'CONFIG_INVALID', /not known/],
  ])('refuses --torch %s with driver %s', (torch, version, code, message) => {
    expect(() => planSetup({ torch, driver: version === null ? null : driver(version) })).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    )
  })
})
