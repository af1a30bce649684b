import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errorMessage, TrainError } from '@aworld-train/core'
import type { KubernetesJob, KubernetesPod, KubernetesSecret } from './kubernetes-objects.ts'

/** Longest wait for one answer of the cluster. */
const answerMs = 30_000

interface Named {
  readonly name: string
  readonly namespace: string
}

/** The used part of `BatchV1Api` of @kubernetes/client-node. */
interface BatchApi {
  createNamespacedJob(request: {
    namespace: string
    body: KubernetesJob
    dryRun?: 'All'
    fieldValidation: 'Strict'
  }): Promise<KubernetesJob>
  readNamespacedJob(request: Named): Promise<KubernetesJob>
  listNamespacedJob(request: { namespace: string; labelSelector: string }): Promise<{ readonly items: readonly KubernetesJob[] }>
  patchNamespacedJob(request: Named & { body: readonly JsonPatch[] }): Promise<KubernetesJob>
  deleteNamespacedJob(request: Named & { propagationPolicy: 'Foreground' }): Promise<unknown>
}

/** The used part of `CoreV1Api`. */
interface CoreApi {
  listNamespacedPod(request: { namespace: string; labelSelector: string }): Promise<{ readonly items: readonly KubernetesPod[] }>
  createNamespacedSecret(request: { namespace: string; body: KubernetesSecret }): Promise<unknown>
}

interface KubeConfig {
  loadFromDefault(): void
  getContexts(): readonly { readonly name: string }[]
  setCurrentContext(name: string): void
  getContextObject(name: string): { readonly namespace?: string } | null
  getCurrentContext(): string
  getCurrentCluster(): { readonly server: string } | null
  makeApiClient<Api>(api: new (...parameters: never[]) => Api): Api
}

/** The used part of the module, which users of this engine install. */
export interface ClientModule {
  readonly KubeConfig: new () => KubeConfig
  readonly BatchV1Api: new (...parameters: never[]) => BatchApi
  readonly CoreV1Api: new (...parameters: never[]) => CoreApi
}

/** One operation of a JSON Patch (RFC 6902). */
export interface JsonPatch {
  readonly op: 'add' | 'replace'
  readonly path: string
  readonly value: unknown
}

/** One namespace of a cluster. Methods reject with CONFIG_INVALID. `find` resolves to `null` for a missing Job. */
export interface KubernetesClient {
  readonly namespace: string
  readonly server: string
  /** Creates a Job. With `dryRun` the cluster only checks it. */
  create(job: KubernetesJob, dryRun?: boolean): Promise<KubernetesJob>
  createSecret(secret: KubernetesSecret): Promise<void>
  find(name: string): Promise<KubernetesJob | null>
  jobs(labels: string): Promise<readonly KubernetesJob[]>
  pods(labels: string): Promise<readonly KubernetesPod[]>
  patch(name: string, changes: readonly JsonPatch[]): Promise<void>
  /** Begins to delete a Job with all that belongs to it. A missing Job is no error. */
  remove(name: string): Promise<void>
}

const packageName = '@kubernetes/client-node'

async function loadClient(directory: string): Promise<ClientModule> {
  for (const from of [join(directory, 'package.json'), join(process.cwd(), 'package.json'), import.meta.url]) {
    let file: string
    try {
      file = createRequire(from).resolve(packageName)
    } catch {
      continue
    }
    return (await import(pathToFileURL(file).href)) as ClientModule
  }
  throw new TrainError('CONFIG_INVALID', `executor.engineName "k8s" needs ${packageName}; install it: npm install ${packageName}`)
}

export interface KubernetesAddress {
  /** Name of a context of the kubeconfig; `null` for the current one, or for the account of the pod that this process runs in. */
  readonly context: string | null
  /** Namespace; `null` for that of the context. */
  readonly namespace: string | null
  /** Folder whose packages are looked at before those of the working directory. */
  readonly directory: string
}

/** Reads the kubeconfig, or the account of the pod, without asking the cluster. Rejects with CONFIG_INVALID. */
export async function openKubernetesClient({ context, namespace, directory }: KubernetesAddress): Promise<KubernetesClient> {
  const { KubeConfig, BatchV1Api, CoreV1Api } = await loadClient(directory)
  const config = new KubeConfig()
  try {
    config.loadFromDefault()
  } catch (cause) {
    throw new TrainError('CONFIG_INVALID', `The kubeconfig cannot be read: ${errorMessage(cause)}; correct it, or set KUBECONFIG.`, {
      cause,
    })
  }
  if (context !== null) {
    const names = config.getContexts().map(({ name }) => name)
    if (!names.includes(context))
      throw new TrainError(
        'CONFIG_INVALID',
        `executor.address is "${context}", which is no context of the kubeconfig: ${names.join(', ')}.`,
      )
    config.setCurrentContext(context)
  }
  const server = config.getCurrentCluster()?.server ?? 'of no address'
  const place = namespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default'
  const [batch, core] = [config.makeApiClient(BatchV1Api), config.makeApiClient(CoreV1Api)]

  async function ask<Answer>(what: string, request: Promise<Answer>): Promise<Answer> {
    let late: NodeJS.Timeout | undefined
    const deadline = new Promise<never>((_, reject) => {
      late = setTimeout(() => reject(new Error(`no answer in ${answerMs / 1_000} s`)), answerMs)
    })
    try {
      return await Promise.race([request, deadline])
    } catch (cause) {
      throw toClusterError(cause, { what, server, namespace: place })
    } finally {
      clearTimeout(late)
    }
  }

  return {
    namespace: place,
    server,
    create: (body, dryRun = false) =>
      ask(
        'create jobs',
        batch.createNamespacedJob({ namespace: place, body, fieldValidation: 'Strict', ...(dryRun && { dryRun: 'All' as const }) }),
      ),
    async createSecret(body) {
      await ask('create secrets', core.createNamespacedSecret({ namespace: place, body }))
    },
    find: (name) => ask('get jobs', batch.readNamespacedJob({ name, namespace: place })).catch(orNull),
    jobs: async (labelSelector) => (await ask('list jobs', batch.listNamespacedJob({ namespace: place, labelSelector }))).items,
    pods: async (labelSelector) => (await ask('list pods', core.listNamespacedPod({ namespace: place, labelSelector }))).items,
    async patch(name, body) {
      await ask('patch jobs', batch.patchNamespacedJob({ name, namespace: place, body }))
    },
    async remove(name) {
      await ask('delete jobs', batch.deleteNamespacedJob({ name, namespace: place, propagationPolicy: 'Foreground' })).catch(orNull)
    },
  }
}

function orNull(error: unknown): null {
  if (error instanceof TrainError && error.details?.['status'] === 404) return null
  throw error
}

/** Turns the cluster's answer into an error that names a remedy. */
function toClusterError(cause: unknown, { what, server, namespace }: { what: string; server: string; namespace: string }): TrainError {
  const { code: status } = cause as { readonly code?: unknown }
  const reason = reasonOf(cause)
  const details = { ...(typeof status === 'number' && { status }) }
  const error = (message: string) => new TrainError('CONFIG_INVALID', message, { cause, details })
  if (status === 401)
    return error(
      `The Kubernetes cluster ${server} does not take these credentials: ${reason}. Log in again, or name another context in executor.address.`,
    )
  if (status === 403)
    return error(
      `The Kubernetes cluster ${server} does not let this account ${what} in namespace "${namespace}": ${reason}. Bind it to the role in manifests/base/access.yaml of @aworld-train/executors/kubernetes, or name another namespace in executor.options.namespace.`,
    )
  if (status === 404)
    return error(`The Kubernetes cluster ${server} has not what it takes to ${what} in namespace "${namespace}": ${reason}.`)
  if (typeof status === 'number')
    return error(
      `The Kubernetes cluster ${server} refused to ${what} in namespace "${namespace}" (${status}): ${reason}. Correct executor.`,
    )
  return error(
    `The Kubernetes cluster ${server} does not answer: ${reason}. Correct the kubeconfig, KUBECONFIG, or executor.address, which names a context.`,
  )
}

/** The message of a `Status` object, or of a failure below HTTP. */
function reasonOf(cause: unknown): string {
  const { body } = cause as { readonly body?: unknown }
  if (typeof body === 'string') {
    try {
      const { message } = JSON.parse(body) as { readonly message?: unknown }
      if (typeof message === 'string') return message.replace(/\.$/, '')
    } catch {}
    return body.trim()
  }
  const inner = (cause as { readonly cause?: unknown }).cause
  return [errorMessage(cause), ...(inner === undefined ? [] : [errorMessage(inner)])].join(': ').replace(/\.$/, '')
}
