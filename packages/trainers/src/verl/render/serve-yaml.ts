import { resolve } from 'node:path'
import { valueAt } from '@aworld-train/training'
import { stringify } from 'yaml'
import type { VerlPlan } from '../config/verl-config.ts'
import type { VerlSettings } from '../config/verl-settings.ts'
import { withoutDefaults } from './final-trainer.ts'
import { servePort } from './run-script.ts'

/** Text of `serve.yaml`, the configuration of `aworld-train serve` that answers `run.sh`; `null` for a live agent object. */
export function renderServeYaml(
  { run, settings, tree, config }: VerlPlan,
  { isFolder }: { readonly isFolder: (path: string) => boolean },
): string | null {
  if (run.agent.module === null) return null
  const model = String(valueAt(tree, 'actor_rollout_ref.model.path'))
  const timeoutMs = settings.limits.timeoutMs ?? settings.rolloutTimeoutMs
  const { native, path, name, ...rewardSettings } = settings.reward
  const file = native ? null : (run.reward ?? (path === null ? null : { path: resolve(config.directory, path), name }))
  const places = placesOf(settings, config.directory)
  const served = {
    gateway: { port: 0, ...places.gateway },
    models: {
      [model.split('/').filter(Boolean).slice(-2).join('/') || 'policy']: {
        kind: 'channel',
        path: isFolder(model) ? model : null,
        rows: settings.rows,
        incompleteEpisodes: settings.incompleteEpisodes,
        ownReward: settings.ownReward,
        graceMs: settings.graceMs,
        rolloutTimeoutMs: timeoutMs,
        maxCompletionTokens: settings.maxCompletionTokens,
        maxPromptBytes: settings.model.maxPromptBytes,
        toolAnswers: settings.toolAnswers,
        malformedCalls: settings.agent.malformedCalls,
      },
      ...Object.fromEntries(Object.entries(settings.models).map(([key, frozen]) => [key, { kind: 'frozen', ...frozen }])),
    },
    seed: settings.seed,
    history: settings.model.history,
    clients: null,
    recording: './service',
    rollouts: {
      port: servePort,
      token: { env: 'AWORLD_TRAIN_CHANNEL_TOKEN' },
      agent: run.agent.module,
      concurrency: settings.concurrency,
    },
    reward: { ...file, ...rewardSettings },
    environment: settings.environment,
    limits: { ...settings.limits, timeoutMs },
    evaluation: { kindKey: settings.evaluation.kindKey },
    ...(places.executor && { executor: places.executor }),
  }
  const lines = [
    'What run.sh is answered by: aworld-train serve --config serve.yaml',
    'AWORLD_TRAIN_CHANNEL_TOKEN holds the same secret for both.',
    ...(settings.gateway.host !== '127.0.0.1'
      ? [
          'Workers on other machines connect to the port of rollouts: give it a host that they reach, and run.sh its address in AWORLD_TRAIN_CHANNEL.',
        ]
      : []),
  ]
  return `${lines.map((line) => `# ${line}\n`).join('')}${stringify(served)}`
}

/** What the configuration says about the gateway and about the place of agents. Its files are named by absolute paths. */
function placesOf({ gateway, executor }: VerlSettings, directory: string) {
  const { tls } = gateway
  const { cls, token } = executor
  return withoutDefaults({
    gateway: { ...gateway, tls: tls && { cert: resolve(directory, tls.cert), key: resolve(directory, tls.key) } },
    executor: {
      ...executor,
      cls: cls && resolve(directory, cls),
      token: typeof token === 'object' && token && 'file' in token ? { file: resolve(directory, token.file) } : token,
    },
  }) as { readonly gateway?: object; readonly executor?: object }
}
