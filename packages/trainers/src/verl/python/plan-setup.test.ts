import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import { planSetup } from './plan-setup.ts'

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
    const plan = planSetup({ torch, driver: version === null ? null : driver(version) })
    expect({ ...plan, requirements: basename(plan.requirements) }).toMatchObject({ requirements, arguments: args })
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
