import { expect, it } from 'vitest'
import type { KubernetesPod } from './kubernetes-objects.ts'
import { podProblem } from './pod-problem.ts'

const pod = (state: object, conditions: NonNullable<NonNullable<KubernetesPod['status']>['conditions']> = []): KubernetesPod => ({
  metadata: { name: 'worker-0' },
  status: { conditions, containerStatuses: [{ image: 'project:1', state }] },
})

it.each<[string, KubernetesPod, [kind: string, blocks: boolean] | null]>([
  ['starts', pod({ waiting: { reason: 'ContainerCreating' } }), null],
  ['tries an image again', pod({ waiting: { reason: 'ErrImagePull' } }), null],
  ['runs', pod({ running: {} }), null],
  ['has left', pod({ terminated: { exitCode: 0 } }), null],
  [
    'is placed nowhere',
    { status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' }] } },
    ['place', false],
  ],
  ['has no image', pod({ waiting: { reason: 'ImagePullBackOff', message: 'not found' } }), ['image', true]],
  ['misses a Secret', pod({ waiting: { reason: 'CreateContainerConfigError' } }), ['container', true]],
  ['has no such command', pod({ terminated: { exitCode: 127 } }), ['start', true]],
  ['is misused', pod({ terminated: { exitCode: 2, message: 'unknown option' } }), ['misuse', true]],
  ['ran out of memory', pod({ terminated: { exitCode: 137, reason: 'OOMKilled' } }), ['memory', false]],
  ['was killed', pod({ terminated: { exitCode: 137, reason: 'Error' } }), ['failure', false]],
  [
    'was evicted after a misuse that its drain caused',
    pod({ terminated: { exitCode: 2 } }, [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }]),
    ['disruption', false],
  ],
])('a pod that %s', (_, subject, expected) => {
  const problem = podProblem(subject)
  expect(problem && [problem.kind, problem.blocks]).toEqual(expected)
})
