import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { createPolledMetrics } from './polled-metrics.ts'

it('metrics are read at each scrape, and a value that is gone is not shown again', async () => {
  const registry = new Registry()
  const { gauge, counter } = createPolledMetrics(registry, 'test_')
  let values: Record<string, number> = { a: 1, b: 2 }
  gauge('queue', 'How long it is.', () => values['a'] ?? 0)
  gauge('rooms', 'By name.', () => values, 'name')
  counter('calls', 'Since the start.', () => 7)
  counter('errors', 'By code.', () => values, 'code')
  const samples = async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('test_'))
  const calls = 'test_calls_total 7'
  expect(await samples()).toEqual([
    'test_queue 1',
    'test_rooms{name="a"} 1',
    'test_rooms{name="b"} 2',
    calls,
    'test_errors_total{code="a"} 1',
    'test_errors_total{code="b"} 2',
  ])
  values = { b: 5 }
  expect(await samples()).toEqual(['test_queue 0', 'test_rooms{name="b"} 5', calls, 'test_errors_total{code="b"} 5'])
})
