export { kubernetesEngine } from './kubernetes-launcher.ts'
