/** Where the variables of Ray's workers stand in verl's tree. */
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
 * Of the variables that a run sets, those that its workers are given where a cluster, and not verl, started their node. Ray
 * shows what workers are given, so a name that sounds like a secret is left out; so is what Ray and Hydra read.
 */
export function exportedVariables(environment: Readonly<Record<string, string>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    ofLaunch.has(name) || /^(RAY|HYDRA)_|KEY|TOKEN(?!IZERS)|SECRET|PASSWORD|CREDENTIAL/i.test(name) || /['\\\n]/.test(value) ? [] : [name],
  )
}
