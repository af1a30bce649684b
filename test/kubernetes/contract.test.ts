import { mkdirSync, readdirSync } from 'node:fs'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeExecutor } from '@aworld-train/testing'
import { afterAll, beforeAll, inject } from 'vitest'
import { executorSubject } from '../support/executor-exam/executor-subject.ts'
import { accessTo, clientPackages, type TestNamespace } from './cluster.ts'

const { createNamespace, kubectl, pushProject } = accessTo(inject('cluster'))

let folder: string
let namespace: TestNamespace
let place = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-kubernetes-exam-'))
  await symlink(clientPackages, join(folder, 'node_modules'))
  namespace = await createNamespace(folder)
  process.env['KUBECONFIG'] = namespace.kubeconfig
})
afterAll(async () => {
  await kubectl('delete', 'namespace', namespace.name, '--wait=false')
  await rm(folder, { recursive: true, force: true })
})

let places = 0
describeExecutor(
  'k8s',
  executorSubject(
    () => {
      place = join(folder, `place-${++places}`)
      mkdirSync(place)
      return place
    },
    // The project of the image is the one folder that the exam has made in its place.
    () => ({ engineName: 'k8s', options: { image: pushProject(folder, join(place, readdirSync(place)[0]!)), graceSeconds: 60 } }),
    {
      not: {
        launcher: 'what starts workers again is the cluster itself',
        coordinator: 'workers wait long for a coordinator that was there, since the cluster starts it again',
      },
    },
  ),
)
