export { keyProblem, pathProblem } from './fixed-addresses.ts'
export { createGateway } from './gateway.ts'
export type { ChatRoute, FrozenPrice, FrozenRoute, ModelRoute, TokenRoute, ToolAnswerCut } from './models/routes.ts'
export {
  defaultLimits,
  type Gateway,
  type GatewayLimits,
  type GatewayLogger,
  type GatewayOptions,
  type GatewayWarning,
  type PublishWeights,
} from './options.ts'
