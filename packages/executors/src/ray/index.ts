export { createJobsApi } from './jobs-api.ts'
export { createRayLauncher, rayEngine } from './ray-launcher.ts'
