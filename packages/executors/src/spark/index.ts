export { createSparkLauncher, sparkEngine } from './spark-launcher.ts'
