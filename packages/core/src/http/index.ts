export { createBearerCheck } from './bearer.ts'
export { type BodyEnd, BodyError, type BodyMemory } from './body.ts'
export { checkExposure, type Exposure, isLoopback } from './exposure.ts'
export { freeMemory } from './free-memory.ts'
export type { HttpRequest, HttpResponse } from './message.ts'
export {
  type HttpLimits,
  type HttpServerOptions,
  type OpenHttpServer,
  openHttpServer,
  type SocketRefusal,
  type TlsIdentity,
} from './open-http-server.ts'
export { collectBody, discardBody, readBody } from './read-body.ts'
