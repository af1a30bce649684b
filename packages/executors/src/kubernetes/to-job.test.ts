import { expect, it } from 'vitest'
import { parseKubernetesOptions } from './kubernetes-options.ts'
import { type JobWorker, missingFields, toJob } from './to-job.ts'

const worker: JobWorker = {
  name: 'aworld-train-1',
  coordinator: 'c0ffee',
  url: 'https://coordinator:8090',
  agent: './agent.ts#agent',
  workerNum: 4,
  slots: 16,
  resources: { limits: { memory: '2Gi' } },
  env: { PRICE: '$(HOME)' },
  hasToken: true,
}

it('says to Kubernetes how often a worker starts again, what does not count, and what ends all', () => {
  const options = parseKubernetesOptions({
    image: 'project:1',
    secrets: { KEY: { name: 'keys', key: 'openai' } },
    pod: { nodeSelector: { pool: 'agents' } },
    container: { imagePullPolicy: 'Always' },
    backoffLimit: 3,
  })
  expect(toJob(worker, options)).toMatchInlineSnapshot(`
    {
      "apiVersion": "batch/v1",
      "kind": "Job",
      "metadata": {
        "labels": {
          "app.kubernetes.io/managed-by": "aworld-train",
          "app.kubernetes.io/name": "aworld-train-worker",
          "aworld-train/coordinator": "c0ffee",
        },
        "name": "aworld-train-1",
      },
      "spec": {
        "backoffLimitPerIndex": 3,
        "completionMode": "Indexed",
        "completions": 4,
        "parallelism": 4,
        "podFailurePolicy": {
          "rules": [
            {
              "action": "Ignore",
              "onPodConditions": [
                {
                  "status": "True",
                  "type": "DisruptionTarget",
                },
              ],
            },
            {
              "action": "FailJob",
              "onExitCodes": {
                "containerName": "worker",
                "operator": "In",
                "values": [
                  2,
                  64,
                ],
              },
            },
          ],
        },
        "suspend": true,
        "template": {
          "metadata": {
            "labels": {
              "app.kubernetes.io/managed-by": "aworld-train",
              "app.kubernetes.io/name": "aworld-train-worker",
              "aworld-train/coordinator": "c0ffee",
            },
          },
          "spec": {
            "automountServiceAccountToken": false,
            "containers": [
              {
                "args": [
                  "--coordinator",
                  "https://coordinator:8090",
                  "--agent",
                  "./agent.ts#agent",
                  "--slots",
                  "16",
                  "--name",
                  "$(AWORLD_TRAIN_WORKER_NAME)",
                  "--away",
                  "3600",
                  "--signal-exit-code",
                  "143",
                  "--token-env",
                  "AWORLD_TRAIN_COORDINATOR_TOKEN",
                ],
                "command": [
                  "aworld-train",
                  "worker",
                ],
                "env": [
                  {
                    "name": "AWORLD_TRAIN_WORKER_NAME",
                    "valueFrom": {
                      "fieldRef": {
                        "fieldPath": "metadata.name",
                      },
                    },
                  },
                  {
                    "name": "AWORLD_TRAIN_COORDINATOR_TOKEN",
                    "valueFrom": {
                      "secretKeyRef": {
                        "key": "token",
                        "name": "aworld-train-1",
                      },
                    },
                  },
                  {
                    "name": "PRICE",
                    "value": "$$(HOME)",
                  },
                  {
                    "name": "KEY",
                    "valueFrom": {
                      "secretKeyRef": {
                        "key": "openai",
                        "name": "keys",
                      },
                    },
                  },
                ],
                "image": "project:1",
                "imagePullPolicy": "Always",
                "name": "worker",
                "resources": {
                  "limits": {
                    "memory": "2Gi",
                  },
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
              },
            ],
            "nodeSelector": {
              "pool": "agents",
            },
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 120,
          },
        },
        "ttlSecondsAfterFinished": 600,
      },
    }
  `)
})

it.each([
  [{}, ['"executor.options.image" is missing']],
  [{ image: 'a', imag: 'b' }, ['"executor.options.imag" is no key of the configuration. Did you mean "image"?']],
  [{ image: 'a', secrets: { KEY: 'plain' } }, ['"executor.options.secrets.KEY" is "plain"']],
  [{ image: 'a', namespace: 'Team A' }, ['"executor.options.namespace" is "Team A": must be a name as Kubernetes has them']],
  [
    { image: 'a', pod: { restartPolicy: 'Always' }, container: { resources: {} } },
    [
      '"executor.options.pod.restartPolicy" is written by the launcher; set executor.options.backoffLimit',
      '"executor.options.container.resources" is written by the launcher; set executor.resources.',
    ],
  ],
])('names every problem of options %j', (options, problems) => {
  const parse = () => parseKubernetesOptions(options)
  for (const problem of problems) expect(parse).toThrow(problem)
})

it('finds what a server did not keep, and not what it wrote in another way', () => {
  const sent = {
    nodeSelectr: { a: 'b' },
    volumes: [
      { name: 'x', emptyDri: {} },
      { name: 'y', emptyDir: { medum: 'Memory' } },
    ],
    cpu: '0.5',
    none: {},
  }
  const kept = { volumes: [{ name: 'x' }, { name: 'y', emptyDir: {} }], cpu: '500m', dnsPolicy: 'ClusterFirst' }
  expect(missingFields(sent, kept)).toEqual(['nodeSelectr', 'volumes[1].emptyDir.medum'])
})
