import type { Config } from '../../../config/schema.ts'
import { type Finding, satisfied, violated } from './conditions.ts'
import type { ConditionState, ObjectStatus } from './object-status.ts'

export type GatewayObjectStatus = Extract<ObjectStatus, { of: 'gateway' }>

/** Facts about the proxies of a Gateway. */
export type ProxyState = {
  /**
   * The latest generation of the Gateway whose Config, or a later one, was acknowledged by a proxy; undefined
   * before the first acknowledgement.
   */
  readonly acknowledgedGeneration: number | undefined
  /** Errors of proxies that refused the latest Config, one line each. */
  readonly errors: readonly string[]
  readonly addresses: readonly { readonly type: string; readonly value: string }[]
  /** Values of `spec.addresses` that could not be assigned. */
  readonly unusableAddresses: readonly string[]
  /** The reason why the proxies could not be deployed. */
  readonly deploymentError: string | undefined
}

/** Adds addresses and `Programmed`, of the Gateway and its listeners, to the status of a Gateway. */
export function programmed(
  status: GatewayObjectStatus,
  config: Config | undefined,
  state: ProxyState,
): GatewayObjectStatus {
  const { conditions = [], listeners } = status.status
  const served = servedListeners(config)
  const delivery = deliveryFinding(conditions, state)
  const ofGateway =
    acceptedFinding(conditions) ??
    (served.size === 0 ? notProgrammed('Invalid', 'no listener can serve requests') : undefined) ??
    deploymentFinding(state) ??
    delivery
  return {
    ...status,
    status: {
      ...status.status,
      addresses: state.addresses,
      conditions: withFinding(conditions, ofGateway),
      ...(listeners && {
        listeners: listeners.map((listener) => ({
          ...listener,
          conditions: withFinding(
            listener.conditions,
            served.has(listener.name) ? delivery : listenerFinding(listener.conditions),
          ),
        })),
      }),
    },
  }
}

const maxErrors = 3

function notProgrammed(reason: string, message: string): Finding {
  return violated('Programmed', reason, message)
}

function acceptedFinding(conditions: readonly ConditionState[]): Finding | undefined {
  const accepted = conditions.find(({ type }) => type === 'Accepted')
  if (accepted?.status === 'True') return undefined
  return notProgrammed('Invalid', `the Gateway is not accepted: ${accepted?.message ?? ''}`)
}

function deploymentFinding(state: ProxyState): Finding | undefined {
  const { deploymentError, unusableAddresses, addresses } = state
  if (deploymentError !== undefined) {
    return notProgrammed('DeploymentFailed', `the proxies are not deployed: ${deploymentError}`)
  }
  if (unusableAddresses.length > 0) {
    return notProgrammed('AddressNotUsable', `addresses not assigned: ${unusableAddresses.join(', ')}`)
  }
  if (addresses.length > 0) return undefined
  return notProgrammed('AddressNotAssigned', 'the Service of the proxies has no address yet')
}

/** Whether a proxy serves the generation that the conditions describe. */
function deliveryFinding(conditions: readonly ConditionState[], state: ProxyState): Finding {
  const { acknowledgedGeneration, errors } = state
  const generation = conditions[0]?.observedGeneration ?? 0
  const shown = errors.slice(0, maxErrors).join('; ')
  const refusals = errors.length > maxErrors ? `${shown}; and ${errors.length - maxErrors} more` : shown
  if (acknowledgedGeneration !== undefined && acknowledgedGeneration >= generation) {
    return satisfied(
      'Programmed',
      'Programmed',
      errors.length === 0 ? '' : `proxies serve a previous configuration: ${refusals}`,
    )
  }
  if (errors.length > 0) return notProgrammed('Invalid', `proxies refuse the configuration: ${refusals}`)
  return notProgrammed('Pending', `no proxy has acknowledged generation ${generation} yet`)
}

function listenerFinding(conditions: readonly ConditionState[]): Finding {
  const cause = ['Accepted', 'ResolvedRefs']
    .map((name) => conditions.find(({ type, status }) => type === name && status === 'False'))
    .find((condition) => condition !== undefined)
  return notProgrammed('Invalid', cause?.message ?? 'the listener serves nothing')
}

/** The condition of a finding, for the generation of the other conditions. */
function withFinding(conditions: readonly ConditionState[], finding: Finding): readonly ConditionState[] {
  const generation = conditions[0]?.observedGeneration
  const added = { ...finding, ...(generation === undefined ? {} : { observedGeneration: generation }) }
  return [...conditions.filter(({ type }) => type !== finding.type), added].sort((a, b) =>
    a.type < b.type ? -1 : 1,
  )
}

function servedListeners(config: Config | undefined): ReadonlySet<string> {
  const gateways = Object.values(config?.gateways ?? {})
  return new Set(gateways.flatMap(({ listeners = [] }) => listeners.map(({ name = '' }) => name)))
}
