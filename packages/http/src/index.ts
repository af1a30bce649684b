export { type Cassette, type CassetteOptions, openCassette, type RecordedResponse } from './outward/cassette.ts'
export { type OpenOutward, openOutward } from './outward/open-outward.ts'
export type { OutwardCassette, OutwardOptions, OutwardService, WebOptions } from './outward/outward-options.ts'
export type { RateLimits } from './outward/rate.ts'
export { createRedact, type Redact } from './outward/redact.ts'
export { type Answered, isUnsent, retryPauseMs, retryRules, sendWithRetries } from './retry.ts'
export { createBearerCheck, createSecretCheck } from './serve/bearer.ts'
export { checkExposure, type Exposure, isLoopback } from './serve/exposure.ts'
export {
  type HttpLimits,
  type HttpServerOptions,
  type OpenHttpServer,
  openHttpServer,
  type SocketRefusal,
  type TlsIdentity,
} from './serve/open-http-server.ts'
export { createPolledMetrics, type PolledMetrics } from './serve/polled-metrics.ts'
export { BodyError, discardBody, readBody, streamBody } from './serve/read-body.ts'
export { requestUrl } from './serve/request-url.ts'
