export { aworldToolServers, getAgentToolEnvAndServers } from './agent-tool-env.ts'
export { connectionFileName, type EnvironmentConnection, environmentFolder, readConnection } from './connection-file.ts'
export { createEnvironment } from './create-environment.ts'
export type { EnvironmentOptions } from './environment-options.ts'
