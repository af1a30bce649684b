export { createJobsApi, type JobSubmission, type JobsApi, type RayJob } from './jobs-api.ts'
export { createRayLauncher, rayEngine } from './ray-launcher.ts'
