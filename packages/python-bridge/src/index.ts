export {
  type FindPythonOptions,
  type FoundPython,
  findPython,
  interpreterOf,
  type PythonCandidate,
  setUpAdvice,
  setupFolder,
} from './environment/find-python.ts'
export { type InspectPythonOptions, inspectPython, type PythonReport } from './environment/inspect-python.ts'
export { type MadeEnvironment, type MakeEnvironmentOptions, makeEnvironment } from './environment/make-environment.ts'
export { makeTrainerEnvironment, type SetUpOptions, type TrainerEnvironment } from './environment/make-trainer-environment.ts'
export { type PinnedPythonOptions, pinnedPython } from './environment/pinned-python.ts'
export { oldestGpuDriver, type ProbeGpuDriverOptions, probeGpuDriver, runsOn } from './environment/probe-gpu-driver.ts'
export { type ProcessResult, type RunProcessOptions, runProcess } from './environment/run-process.ts'
export { compareVersions, isBelow } from './environment/versions.ts'
export { type AskConfigurationOptions, askConfiguration, type ConfigurationAnswer } from './process/ask-configuration.ts'
export { type BridgeEnvironmentOptions, bridgeEnvironment } from './process/bridge-environment.ts'
export { exportFolder } from './process/export-folder.ts'
export {
  commonFailures,
  createFailureReader,
  type FailureReader,
  type FailureRow,
  modelFailures,
  torchFailures,
} from './process/failure-reader.ts'
export { type FolderCheckpointsOptions, folderCheckpoints } from './process/folder-checkpoints.ts'
export {
  consoleFileOf,
  type LaunchTrainerOptions,
  launchTrainer,
  type StopDeadlines,
  type SweepTrainerOptions,
  sweepTrainer,
  type TrainerExit,
  type TrainerProcess,
} from './process/launch-trainer.ts'
export { metricsFileOf, numbersOf, readMetrics } from './process/metrics-file.ts'
export * from './python-package.ts'
