import type { KubernetesJob } from './kubernetes-objects.ts'
import type { KubernetesOptions } from './kubernetes-options.ts'

/** Label of a Job that names the coordinator of its workers. */
export const coordinatorLabel = 'aworld-train/coordinator'
/** A worker's variable with the token of its coordinator. */
const tokenVariable = 'AWORLD_TRAIN_COORDINATOR_TOKEN'
/** Key of the Job's Secret with that token. */
export const tokenKey = 'token'

/** Exit codes of a worker that only another configuration helps: that of our command line, and EX_USAGE of sysexits.h. */
export const misuseCodes = [2, 64]
/** Exit code of a worker that a signal has drained. With 0, Kubernetes would count its index as complete and not start it again. */
const drainedCode = 143
/** Seconds that a worker waits for a coordinator that was connected and is away. This costs its pod no restart, of which there are few. */
const awaySeconds = 3_600

/** Settings of the Job's workers. */
export interface JobWorker {
  readonly name: string
  /** Value of `coordinatorLabel`. */
  readonly coordinator: string
  readonly url: string
  /** Path of the agent, relative to the working directory of the image. */
  readonly agent: string
  readonly workerNum: number
  readonly slots: number
  readonly resources: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string>>
  readonly hasToken: boolean
}

const secretVariable = (name: string, secret: string, key: string) => ({ name, valueFrom: { secretKeyRef: { name: secret, key } } })

/**
 * Builds an Indexed Job whose pods are workers. It is suspended, so that no pod starts before its Secret exists. Exit codes of misuse end
 * the Job. A pod that its node or a drain has ended does not count as a failure
 * (https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy).
 */
export function toJob(worker: JobWorker, options: KubernetesOptions): KubernetesJob {
  const { name, coordinator, url, agent, workerNum, slots, resources, env, hasToken } = worker
  const { image, command, secrets, pod, container, backoffLimit, graceSeconds, ttlSeconds } = options
  const labels = {
    'app.kubernetes.io/name': 'aworld-train-worker',
    'app.kubernetes.io/managed-by': 'aworld-train',
    [coordinatorLabel]: coordinator,
  }
  const variables = [
    // This name belongs to no other pod, not even the next one of the same index.
    { name: 'AWORLD_TRAIN_WORKER_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ...(hasToken ? [secretVariable(tokenVariable, name, tokenKey)] : []),
    ...Object.entries(env).map(([key, value]) => ({ name: key, value: value.replaceAll('$(', '$$$$(') })),
    ...Object.entries(secrets).map(([key, reference]) => secretVariable(key, reference.name, reference.key)),
  ]
  const args = [
    ['--coordinator', url],
    ['--agent', agent],
    ['--slots', String(slots)],
    ['--name', '$(AWORLD_TRAIN_WORKER_NAME)'],
    ['--away', String(awaySeconds)],
    ['--signal-exit-code', String(drainedCode)],
    hasToken ? ['--token-env', tokenVariable] : [],
  ].flat()
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, labels },
    spec: {
      completionMode: 'Indexed',
      completions: workerNum,
      parallelism: workerNum,
      suspend: true,
      backoffLimitPerIndex: backoffLimit,
      ttlSecondsAfterFinished: ttlSeconds,
      podFailurePolicy: {
        rules: [
          { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
          { action: 'FailJob', onExitCodes: { containerName: 'worker', operator: 'In', values: misuseCodes } },
        ],
      },
      template: {
        metadata: { labels },
        spec: {
          // A worker does not talk to the cluster.
          automountServiceAccountToken: false,
          ...pod,
          restartPolicy: 'Never',
          terminationGracePeriodSeconds: graceSeconds,
          containers: [
            {
              ...container,
              name: 'worker',
              image,
              command,
              args,
              env: variables,
              resources,
              // The pod's status shows what a worker printed last, for people who may not read logs.
              terminationMessagePolicy: 'FallbackToLogsOnError',
            },
          ],
        },
      },
    },
  }
}

/** Paths of fields that are in `sent` but not in `kept`, because a server or its client did not know them. */
export function missingFields(sent: unknown, kept: unknown, path = ''): string[] {
  if (Array.isArray(sent))
    return sent.flatMap((each, index) => missingFields(each, (kept as unknown[] | undefined)?.[index], `${path}[${index}]`))
  if (typeof sent !== 'object' || sent === null) return []
  return Object.entries(sent).flatMap(([key, value]) => {
    const inner = path === '' ? key : `${path}.${key}`
    const found = (kept as Record<string, unknown> | null | undefined)?.[key]
    if (found === undefined) return isEmpty(value) ? [] : [inner]
    return missingFields(value, found, inner)
  })
}

/** Whether a value is empty, which Kubernetes leaves out. */
const isEmpty = (value: unknown) =>
  value === null || value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
