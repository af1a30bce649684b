import { expect, it } from 'vitest'
import { plainLine } from '../../shared/process/console-line.ts'
import { withoutActor } from './worker-line.ts'

it.each([
  ['\x1b[36m(TaskRunnerV1 pid=12, ip=1.2.3.4)\x1b[0m step:1\x1b[32m [repeated 2x]\x1b[0m', 'step:1 [repeated 2x]'],
  ['Training:   0%\rTraining:  50%\rTraining: 100%\r', 'Training: 100%'],
  ['(not an actor) text', '(not an actor) text'],
])('reads %j', (line, expected) => {
  expect(withoutActor(plainLine(line)).replaceAll('\r', '')).toBe(expected)
})
