// Custom tools throw this.
export { ToolError } from '@aworld-train/core'
export { mintConnectionToken } from './access/connection-token.ts'
export type { Egress } from './egress/open-egress.ts'
export { type EnvironmentServer, type EnvironmentServerOptions, openEnvironmentServer } from './host/open-environment-server.ts'
export { browserFolders } from './servers/browser/browser-folders.ts'
export { type SettingKey, settingKeys, settingsTemplate } from './settings/keys.ts'
export { modelServices } from './settings/model-services.ts'
export { type ModelSettings, modelService, modelSettings, openToolModel } from './settings/models.ts'
export { readSettings, type Settings, type SettingsSource } from './settings/read-settings.ts'
export { outwardSettings, type ServiceKey, type ServiceSetting, serviceSettings } from './settings/services.ts'
export { serverAliases, toolServers } from './table.ts'
export {
  defineTool,
  type ModelPart,
  type ModelRole,
  modelRoles,
  type ServerTool,
  type ServerToolContext,
  type ToolModel,
  type ToolNeed,
  type ToolScope,
  type ToolServer,
  toolScopes,
} from './tool-server.ts'
