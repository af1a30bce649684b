export { arealTrainer } from './areal-trainer.ts'
export { ArealSettings } from './config/areal-settings.ts'
