import { readKinds } from '../objects/kinds.ts'

/** Kinds of the objects of a proxy, in the order of their creation. */
export const deployedKinds = {
  ServiceAccount: { group: '', version: 'v1', plural: 'serviceaccounts', isNamespaced: true },
  Secret: readKinds.Secret,
  ConfigMap: readKinds.ConfigMap,
  Service: readKinds.Service,
  Deployment: { group: 'apps', version: 'v1', plural: 'deployments', isNamespaced: true },
  HorizontalPodAutoscaler: {
    group: 'autoscaling',
    version: 'v2',
    plural: 'horizontalpodautoscalers',
    isNamespaced: true,
  },
  PodDisruptionBudget: {
    group: 'policy',
    version: 'v1',
    plural: 'poddisruptionbudgets',
    isNamespaced: true,
  },
} as const

export type DeployedKind = keyof typeof deployedKinds

export const deployedKindNames = Object.keys(deployedKinds) as readonly DeployedKind[]
