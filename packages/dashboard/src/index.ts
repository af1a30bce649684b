export { exportRun } from './export-run.ts'
export { type FolderClient, openFolder } from './folder-client.ts'
export { createHttpRuns, type HttpRuns } from './http-client.ts'
export { type DashboardOptions, type OpenDashboard, openDashboard } from './open-dashboard.ts'
