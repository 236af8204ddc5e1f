import type { ObjectKey } from '../../objects/meta.ts'
import type { ConnectedProxy } from '../../stream/server/proxy-connections.ts'
import type { ProxyState } from '../../translate/status/programmed.ts'

/** Facts about the proxies of each Gateway: publications, acknowledgements, deployment. */
export type ProxyStates = {
  /** Records the version of a Config and the generation of its Gateway. */
  published(gateway: ObjectKey, version: string, generation: number): void
  /** Records the result of a deployment; undefined for success. */
  deployed(gateway: ObjectKey, error: string | undefined): void
  remove(gateway: ObjectKey): void
  stateOf(gateway: ObjectKey, addresses: Addresses): ProxyState
  /** Reasons of proxies that refuse the latest version, without duplicates. */
  errorsOf(gateway: ObjectKey): readonly string[]
}

export type Addresses = Pick<ProxyState, 'addresses' | 'unusableAddresses'>

/** Versions that a lagging proxy may still acknowledge. */
const maxVersions = 64

type GatewayState = {
  /** Generations by version, in order of publication. */
  readonly versions: Map<string, number>
  latest: string | undefined
  deploymentError: string | undefined
}

/** `proxies` returns the proxies that are connected now. */
export function createProxyStates(proxies: (gateway: ObjectKey) => readonly ConnectedProxy[]): ProxyStates {
  const states = new Map<ObjectKey, GatewayState>()

  function stateFor(gateway: ObjectKey): GatewayState {
    const known = states.get(gateway)
    if (known !== undefined) return known
    const created: GatewayState = { versions: new Map(), latest: undefined, deploymentError: undefined }
    states.set(gateway, created)
    return created
  }

  function errorsOf(gateway: ObjectKey): readonly string[] {
    const latest = states.get(gateway)?.latest
    const refusals = proxies(gateway).flatMap(({ refused }) =>
      refused !== undefined && refused.version === latest ? refused.errors : [],
    )
    return [...new Set(refusals)].sort()
  }

  return {
    published(gateway, version, generation) {
      const state = stateFor(gateway)
      state.latest = version
      state.versions.delete(version)
      state.versions.set(version, generation)
      const [oldest] = state.versions.keys()
      if (state.versions.size > maxVersions && oldest !== undefined) state.versions.delete(oldest)
    },
    deployed(gateway, error) {
      stateFor(gateway).deploymentError = error
    },
    remove: (gateway) => void states.delete(gateway),
    stateOf(gateway, addresses) {
      const state = states.get(gateway)
      const generations = proxies(gateway)
        .map(({ serving }) => (serving === undefined ? undefined : state?.versions.get(serving)))
        .filter((generation) => generation !== undefined)
      return {
        acknowledgedGeneration: generations.length === 0 ? undefined : Math.max(...generations),
        errors: errorsOf(gateway),
        ...addresses,
        deploymentError: state?.deploymentError,
      }
    },
    errorsOf,
  }
}
