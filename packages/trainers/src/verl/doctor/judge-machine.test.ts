import type { GpuDriver } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { judgeGpus, judgeMachine } from './judge-machine.ts'
import type { MachineFacts } from './read-machine.ts'

const gib = 2 ** 30
const gpu = { name: 'NVIDIA H100', memoryBytes: 80 * gib, freeBytes: 79 * gib, capability: '9.0' }
const driver = (changes: Partial<GpuDriver> = {}): GpuDriver => ({ version: '580.65.06', cuda: '13.0', gpus: [gpu, gpu], ...changes })
const torch = (changes: object = {}) => ({
  version: '2.11.0+cu130',
  cuda: '13.0',
  available: true,
  devices: [gpu, gpu].map(({ name, memoryBytes, capability }) => ({ name, memoryBytes, capability })),
  error: null,
  ...changes,
})
const levels = (checks: readonly { name: string; level: string }[]) => Object.fromEntries(checks.map(({ name, level }) => [name, level]))

describe('judgeGpus', () => {
  it('says driver, GPUs and torch of a machine that fits', () => {
    expect(judgeGpus(driver(), torch(), { device: 'cuda', gpus: 2 })).toEqual([
      { name: 'driver', level: 'ok', message: '580.65.06, CUDA up to 13.0' },
      { name: 'gpus', level: 'ok', message: '0: NVIDIA H100, 80.0 GiB, capability 9.0\n1: NVIDIA H100, 80.0 GiB, capability 9.0' },
      { name: 'torch', level: 'ok', message: '2.11.0+cu130 for CUDA 13.0, uses 2 GPUs' },
    ])
  })

  it.each([
    [
      'no driver, no configuration',
      null,
      torch({ available: false, devices: [] }),
      null,
      { driver: 'ok', torch: 'ok' },
      /trains on the processor/,
    ],
    [
      'no driver, device cuda',
      null,
      null,
      { device: 'cuda', gpus: 1 },
      { driver: 'problem' },
      /trainer\.device is cuda and this machine has no GPU.*set smoke to true/,
    ],
    ['GPUs of another maker', null, torch({ cuda: null }), { device: 'cuda', gpus: 1 }, { driver: 'ok', torch: 'ok' }, /torch finds GPUs/],
    ['no driver, device cpu', null, null, { device: 'cpu', gpus: 1 }, { driver: 'ok' }, /no NVIDIA driver/],
    [
      'too few GPUs',
      driver(),
      null,
      { device: 'cuda', gpus: 8 },
      { driver: 'ok', gpus: 'problem' },
      /n_gpus_per_node is 8 and this machine has 2/,
    ],
    ['device cpu beside GPUs', driver(), null, { device: 'cpu', gpus: 1 }, { driver: 'ok', gpus: 'warning' }, /the GPUs stay idle/],
    [
      'a busy GPU',
      driver({ gpus: [{ ...gpu, freeBytes: 20 * gib }] }),
      null,
      null,
      { driver: 'ok', gpus: 'warning' },
      /GPU 0 has 20\.0 GiB of 80\.0 GiB free.*gpu_memory_utilization/,
    ],
    [
      'torch for a newer CUDA than the driver',
      driver({ version: '570.124' }),
      torch({ available: false, devices: [] }),
      null,
      { driver: 'ok', gpus: 'ok', torch: 'problem' },
      /built for CUDA 13\.0, which needs driver 580 or newer; this one is 570\.124/,
    ],
    [
      'torch for an older CUDA',
      driver(),
      torch({ cuda: '12.9' }),
      null,
      { driver: 'ok', gpus: 'ok', torch: 'ok' },
      /CUDA 12\.9, uses 2 GPUs/,
    ],
    [
      'torch without CUDA',
      driver(),
      torch({ cuda: null, available: false }),
      null,
      { driver: 'ok', gpus: 'ok', torch: 'problem' },
      /built without CUDA/,
    ],
    [
      'torch that sees none',
      driver(),
      torch({ available: false }),
      null,
      { driver: 'ok', gpus: 'ok', torch: 'problem' },
      /CUDA_VISIBLE_DEVICES/,
    ],
    [
      'torch that cannot be imported',
      null,
      torch({ error: 'OSError: libcublasLt.so.13: cannot open shared object file' }),
      null,
      { driver: 'ok', torch: 'problem' },
      /cannot be imported: OSError: libcublasLt.*setup verl/s,
    ],
  ] as const)('%s', (_, found, torchFacts, needs, expected, message) => {
    const checks = judgeGpus(found, torchFacts, needs)
    expect(levels(checks)).toEqual(expected)
    expect(checks.map((check) => check.message).join('\n')).toMatch(message)
  })
})

describe('judgeMachine', () => {
  const space = (path: string, free: number, total = 500) => ({ path, freeBytes: free * gib, totalBytes: total * gib })
  const machine = (changes: Partial<MachineFacts> = {}): MachineFacts => ({
    memoryBytes: 64 * gib,
    sharedMemory: space('/dev/shm', 32, 32),
    disk: space('/project', 300),
    temporary: space('/tmp', 300),
    rayAddress: null,
    runningRay: null,
    ...changes,
  })
  const onGpus = { device: 'cuda', gpus: 1 }

  it('has nothing against a machine with room', () => {
    expect(levels(judgeMachine(machine(), onGpus))).toEqual({ memory: 'ok', 'shared memory': 'ok', disk: 'ok', ray: 'ok' })
  })

  it.each([
    ['little memory', { memoryBytes: 6 * gib }, null, 'memory', /take 5 GiB/],
    [
      "Docker's shared memory",
      { sharedMemory: space('/dev/shm', 0.0625, 0.0625) },
      null,
      'shared memory',
      /Ray wants 9\.3 GiB.*--shm-size=11g/,
    ],
    ['no shared memory', { sharedMemory: null, memoryBytes: 16 * gib }, null, 'shared memory', /Ray wants 4\.8 GiB.*--shm-size=6g/],
    ['a small disk for GPUs', { disk: space('/project', 60) }, onGpus, 'disk', /checkpoint of a 4B model/],
    ['a full disk', { disk: space('/project', 3) }, null, 'disk', /may need 5\.0 GiB/],
    ['a full /tmp', { temporary: space('/tmp', 20) }, null, 'disk', /\/tmp is over 95 % full.*RAY_TMPDIR/],
    ['RAY_ADDRESS', { rayAddress: '10.0.0.1:6379' }, null, 'ray', /RAY_ADDRESS is 10\.0\.0\.1:6379: verl joins that cluster/],
    ['a running cluster', { runningRay: '127.0.0.1:6379' }, null, 'ray', /a cluster runs at 127\.0\.0\.1:6379/],
  ] as const)('warns of %s', (_, changes, needs, name, message) => {
    const warnings = judgeMachine(machine(changes), needs).filter(({ level }) => level !== 'ok')
    expect(warnings).toEqual([{ name, level: 'warning', message: expect.stringMatching(message) }])
  })

  it('asks for less disk where a small model trains on the processor', () => {
    expect(levels(judgeMachine(machine({ disk: space('/project', 60) }), { device: 'cpu', gpus: 1 }))['disk']).toBe('ok')
  })
})
