import { expect, test } from 'vitest'
import { metricsByRole } from './role-metrics.ts'

test('metrics of roles are told from the others, whatever the roles are called', () => {
  const metrics = { rewardMean: 0.5, 'role/reader/turns': 3, 'role/reader/reward': 1, 'role/web/reader/turns': 2, 'policy/reader/loss': 4 }
  expect([...metricsByRole(metrics)]).toEqual([
    ['reader', { turns: 3, reward: 1 }],
    ['web/reader', { turns: 2 }],
  ])
})
