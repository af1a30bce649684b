/** Place of the variables of Ray's workers in verl's tree. */
export const workerEnvironment = 'ray_kwargs.ray_init.runtime_env.env_vars'

/** Variables of each launch, by which Ray's processes on every node find the service and the files of the run. */
export const workerVariables = [
  'AWORLD_TRAIN_CHANNEL',
  'AWORLD_TRAIN_CHANNEL_TOKEN_FILE',
  'AWORLD_TRAIN_RUN',
  'AWORLD_TRAIN_RUN_PATH',
  'AWORLD_TRAIN_INCARNATION',
  'VERL_FILE_LOGGER_PATH',
  'VERL_USE_EXTERNAL_MODULES',
  'PYTHONPATH',
] as const

const ofLaunch: ReadonlySet<string> = new Set(workerVariables)

/**
 * The variables of a run that its workers are given if a cluster, rather than verl, started their node. Ray shows them, so a name that
 * sounds like a secret is left out. Variables that Ray and Hydra read are left out too.
 */
export function exportedVariables(environment: Readonly<Record<string, string>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    ofLaunch.has(name) || /^(RAY|HYDRA)_|KEY|TOKEN(?!IZERS)|SECRET|PASSWORD|CREDENTIAL/i.test(name) || /['\\\n]/.test(value) ? [] : [name],
  )
}
