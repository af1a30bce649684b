/** `_target_` of verl's agent loop that hands rollouts to AWorld Train (verl/experimental/agent_loop, 0.9.1). */
export const verlAgentLoopTarget = 'aworld_train_bridge.verl.agent_loop.AworldTrainAgentLoop'

/** Module for VERL_USE_EXTERNAL_MODULES, which every verl process imports (verl/__init__.py, 0.9.1). */
export const verlPluginModule = 'aworld_train_bridge.verl.plugin'
