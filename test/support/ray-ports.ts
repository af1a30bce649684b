import { freePort } from './process-group.ts'

const agents = ['dashboard-agent-grpc', 'dashboard-agent-listen', 'runtime-env-agent', 'metrics-export']

/**
 * Arguments of `ray start` for the agents of a node. Ray waits at most 15 s for ports that the agents choose themselves. On a busy machine
 * that is not enough, and the node continues without them.
 */
export const rayAgentPorts = () => Promise.all(agents.map(async (name) => `--${name}-port=${await freePort()}`))
