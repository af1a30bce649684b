import { expect, it } from 'vitest'
import { readRaySettings } from './options.ts'

it.each([
  [{ address: 'head:8265' }, 'executor.address is "head:8265"; give the address of Ray\'s dashboard, such as http://127.0.0.1:8265.'],
  [{ options: { pyton: 'python3' } }, 'executor.options for Ray: Unrecognized key: "pyton".'],
  [{ resources: { num_cpu: 1 } }, 'executor.resources for Ray: Unrecognized key: "num_cpu".'],
  [{ resources: { num_cpus: '1' } }, 'executor.resources for Ray: num_cpus: Invalid input: expected number, received string.'],
])('%j is refused', (settings, message) => {
  expect(() => readRaySettings({ address: null, options: {}, resources: {}, ...settings })).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message }),
  )
})
