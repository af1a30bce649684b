export { serverAliases, toolServers } from './table.ts'
export {
  defineTool,
  type ModelRole,
  modelRoles,
  type Tool,
  type ToolContext,
  type ToolModel,
  type ToolNeed,
  type ToolScope,
  type ToolServer,
  toolScopes,
} from './tool-server.ts'
