export { exportRun } from './export-run.ts'
export { openFolder } from './folder-client.ts'
export { createHttpRuns } from './http-client.ts'
export { type OpenDashboard, openDashboard } from './open-dashboard.ts'
