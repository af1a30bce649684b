import { TrainError } from '@aworld-train/core'
import { describeIssues } from '@aworld-train/training'
import { z } from 'zod'

const objectName = z.string().regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'must be a name as Kubernetes has them: a-z, 0-9, "-" and "."')

/** `executor.options` of engine "k8s". The contents of `pod` and `container` are Kubernetes' own. */
export const KubernetesOptions = z.strictObject({
  /** Image with Node, the project and its packages. Its working directory is the project's. */
  image: z.string().min(1),
  /** Namespace of the Job; `null` for that of the context, or of the pod that this process runs in. */
  namespace: objectName.nullable().default(null),
  /** Path of the agent in the image, relative to its working directory; `null` for its path in the project. */
  agent: z.string().min(1).nullable().default(null),
  /** Command that runs a worker in the image. The worker's options are appended. */
  command: z.array(z.string().min(1)).min(1).default(['aworld-train', 'worker']),
  /** Variables whose values are in Secrets of the namespace. */
  secrets: z
    .record(z.string().regex(/^[^=\0]+$/, 'must be the name of a variable'), z.strictObject({ name: objectName, key: z.string().min(1) }))
    .default({}),
  /** Fields of the pod, such as nodeSelector, tolerations, imagePullSecrets, serviceAccountName, volumes. */
  pod: z.record(z.string().min(1), z.json()).default({}),
  /** Fields of its container, such as imagePullPolicy, volumeMounts, securityContext. */
  container: z.record(z.string().min(1), z.json()).default({}),
  /** How often one worker is restarted after a failure. Disruptions, such as a drained node, do not count. */
  backoffLimit: z.int().min(0).default(6),
  /** Seconds that a worker may take to finish its attempts when it is told to leave. */
  graceSeconds: z.int().min(1).default(120),
  /** Seconds for which a Job that has ended by itself is kept. */
  ttlSeconds: z.int().min(0).default(600),
})
export type KubernetesOptions = z.infer<typeof KubernetesOptions>

/** Fields of pod and container that the launcher writes, with the option that sets them instead. */
const ownFields: Readonly<Record<'pod' | 'container', Readonly<Record<string, string>>>> = {
  pod: {
    containers: 'options.image, options.command, options.container',
    restartPolicy: 'options.backoffLimit',
    terminationGracePeriodSeconds: 'options.graceSeconds',
  },
  container: {
    name: 'nothing',
    image: 'options.image',
    command: 'options.command',
    args: 'options.command',
    env: 'env and options.secrets',
    resources: 'resources',
    terminationMessagePolicy: 'nothing',
  },
}

/** Has the whole path, so that messages name it. */
const Path = z.strictObject({ executor: z.strictObject({ options: KubernetesOptions }) })

/** Checks `executor.options`. Throws CONFIG_INVALID with every problem. */
export function parseKubernetesOptions(value: Readonly<Record<string, unknown>>): KubernetesOptions {
  const executor = { executor: { options: value } }
  const parsed = Path.safeParse(executor)
  const problems = describeIssues(parsed.error, { schema: Path, value: executor })
  if (parsed.success) {
    const { options } = parsed.data.executor
    for (const part of ['pod', 'container'] as const) {
      const taken = Object.keys(options[part]).filter((key) => key in ownFields[part])
      problems.push(
        ...taken.map((key) => `"executor.options.${part}.${key}" is written by the launcher; set executor.${ownFields[part][key]}.`),
      )
    }
    if (problems.length === 0) return options
  }
  throw new TrainError('CONFIG_INVALID', problems.join('\n'), { details: { problems } })
}
