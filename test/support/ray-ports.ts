import { freePort } from './process-group.ts'

const agents = ['dashboard-agent-grpc', 'dashboard-agent-listen', 'runtime-env-agent', 'metrics-export']

/** Arguments of `ray start` for the agents of a node. Ports that they choose by themselves are waited for 15 s at most, which is not enough on a busy machine, where the node goes on without them. */
export const rayAgentPorts = () => Promise.all(agents.map(async (name) => `--${name}-port=${await freePort()}`))
