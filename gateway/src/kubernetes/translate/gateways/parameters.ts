import type { GatewayClass, ParametersRef } from '../../objects/gateway-api.ts'
import { ownGroup } from '../../objects/kinds.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { GatewayParametersSpec } from '../../own-kinds/gateway-parameters.ts'
import { invalidKey, mistakesText } from '../status/invalid-objects.ts'

/** Parameters that a reference resolves to. */
export type ParametersResolution =
  | { readonly kind: 'none' }
  | { readonly kind: 'resolved'; readonly spec: GatewayParametersSpec }
  | { readonly kind: 'invalid'; readonly message: string }

/** The parameters of a class. */
export function parametersOfClass({ spec }: GatewayClass, objects: ObjectSet): ParametersResolution {
  const { parametersRef } = spec
  if (parametersRef === undefined) return { kind: 'none' }
  if (parametersRef.namespace === undefined) {
    return invalid('parametersRef.namespace must be set: GatewayParameters have a namespace')
  }
  return resolveParameters(parametersRef, parametersRef.namespace, objects)
}

/** Resolves a reference to GatewayParameters in a namespace. */
export function resolveParameters(
  reference: Omit<ParametersRef, 'namespace'> | undefined,
  namespace: string,
  objects: ObjectSet,
): ParametersResolution {
  if (reference === undefined) return { kind: 'none' }
  const { group, kind, name } = reference
  if (group !== ownGroup || kind !== 'GatewayParameters') {
    const got = group === '' ? kind : `${group}/${kind}`
    return invalid(`parametersRef must refer to ${ownGroup}/GatewayParameters, got ${got}`)
  }
  const key = `${namespace}/${name}`
  const found = objects.GatewayParameters.get(key)
  if (found !== undefined) return { kind: 'resolved', spec: found.spec }
  const broken = objects.invalid.get(invalidKey('GatewayParameters', key))
  if (broken !== undefined) {
    return invalid(`parametersRef: GatewayParameters ${key} is invalid: ${mistakesText(broken)}`)
  }
  return invalid(`parametersRef: GatewayParameters ${key} is not found`)
}

function invalid(message: string): ParametersResolution {
  return { kind: 'invalid', message }
}

/** Merges the parameters of a class and a Gateway; the Gateway's take precedence. */
export function mergeParameters(
  ofClass: GatewayParametersSpec,
  ofGateway: GatewayParametersSpec,
): GatewayParametersSpec {
  const env = new Map([...(ofClass.env ?? []), ...(ofGateway.env ?? [])].map((entry) => [entry.name, entry]))
  return { ...ofClass, ...ofGateway, ...(env.size === 0 ? {} : { env: [...env.values()] }) }
}
