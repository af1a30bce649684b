export { createBearerCheck, createSecretCheck } from './bearer.ts'
export { checkExposure, type Exposure, isLoopback } from './exposure.ts'
export {
  type HttpLimits,
  type HttpServerOptions,
  type OpenHttpServer,
  openHttpServer,
  type SocketRefusal,
  type TlsIdentity,
} from './open-http-server.ts'
export { BodyError, discardBody, readBody } from './read-body.ts'
