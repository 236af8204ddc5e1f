import { mergedMistakes, mergeParameters, parameterMistakes } from '../../deployer/parameters.ts'
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

/** Parameters, of a class and a Gateway together. */
export type Combined = Exclude<ParametersResolution, { kind: 'none' }>

const maxMistakes = 5

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
  if (found !== undefined)
    return validated(found.spec, `GatewayParameters ${key}`, parameterMistakes(found.spec))
  const broken = objects.invalid.get(invalidKey('GatewayParameters', key))
  if (broken !== undefined) {
    return invalid(`parametersRef: GatewayParameters ${key} is invalid: ${mistakesText(broken)}`)
  }
  return invalid(`parametersRef: GatewayParameters ${key} is not found`)
}

/**
 * Combines the parameters of a class and a Gateway; those of the Gateway take precedence. A broken reference
 * makes the result invalid, and so does a combination with mistakes.
 */
export function combineParameters(ofClass: ParametersResolution, ofGateway: ParametersResolution): Combined {
  if (ofClass.kind === 'invalid') return invalid(`GatewayClass: ${ofClass.message}`)
  if (ofGateway.kind === 'invalid') return invalid(`infrastructure.${ofGateway.message}`)
  const merged = mergeParameters(specOf(ofClass), specOf(ofGateway))
  return validated(merged, 'GatewayParameters of class and Gateway', mergedMistakes(merged))
}

function specOf(resolution: ParametersResolution): GatewayParametersSpec | undefined {
  return resolution.kind === 'resolved' ? resolution.spec : undefined
}

function validated(spec: GatewayParametersSpec, owner: string, mistakes: readonly string[]): Combined {
  if (mistakes.length === 0) return { kind: 'resolved', spec }
  return invalid(`parametersRef: ${owner}: ${mistakes.slice(0, maxMistakes).join('; ')}`)
}

function invalid(message: string): Combined {
  return { kind: 'invalid', message }
}
