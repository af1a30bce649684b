export { keyProblem, pathProblem } from './fixed-addresses.ts'
export { createGateway } from './gateway.ts'
export type { FrozenRoute, ModelRoute, TokenRoute } from './models/routes.ts'
export type { Gateway, GatewayOptions, PublishWeights } from './options.ts'
