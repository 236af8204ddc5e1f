import type { ObjectKey } from '../../objects/meta.ts'
import type { ConnectedProxy } from '../../stream/server/proxy-connections.ts'
import type { ProxyState } from '../../translate/status/programmed.ts'
import type { ProxyReport } from './peer-reports.ts'

/** Facts about the proxies of each Gateway: publications, acknowledgements, deployment. */
export type ProxyStates = {
  /** Records the version of a Config and the generation of its Gateway. */
  published(gateway: ObjectKey, version: string, generation: number): void
  /** Records the result of a deployment; undefined for success. */
  deployed(gateway: ObjectKey, error: string | undefined): void
  remove(gateway: ObjectKey): void
  /** State for the status, with the reports of other replicas. */
  stateOf(gateway: ObjectKey, addresses: Addresses): ProxyState
  /** Gateways with proxies that are connected here. */
  ownReport(): ReadonlyMap<ObjectKey, ProxyReport>
}

export type ProxyStatesOptions = {
  /** Proxies that are connected here. */
  proxies(gateway: ObjectKey): readonly ConnectedProxy[]
  /** Reports of other replicas. */
  peers(gateway: ObjectKey): readonly ProxyReport[]
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

export function createProxyStates({ proxies, peers }: ProxyStatesOptions): ProxyStates {
  const states = new Map<ObjectKey, GatewayState>()

  function stateFor(gateway: ObjectKey): GatewayState {
    const known = states.get(gateway)
    if (known !== undefined) return known
    const created: GatewayState = { versions: new Map(), latest: undefined, deploymentError: undefined }
    states.set(gateway, created)
    return created
  }

  function reportOf(gateway: ObjectKey): ProxyReport {
    const state = states.get(gateway)
    const connected = proxies(gateway)
    const refusals = connected.flatMap(({ refused }) =>
      refused !== undefined && refused.version === state?.latest ? refused.errors : [],
    )
    return {
      acknowledgedGeneration: latest(
        connected.map(({ serving }) => (serving === undefined ? undefined : state?.versions.get(serving))),
      ),
      errors: unique(refusals),
    }
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
      const reports = [reportOf(gateway), ...peers(gateway)]
      return {
        acknowledgedGeneration: latest(reports.map(({ acknowledgedGeneration }) => acknowledgedGeneration)),
        errors: unique(reports.flatMap(({ errors }) => errors)),
        ...addresses,
        deploymentError: states.get(gateway)?.deploymentError,
      }
    },
    ownReport: () =>
      new Map(
        [...states.keys()]
          .filter((gateway) => proxies(gateway).length > 0)
          .map((gateway) => [gateway, reportOf(gateway)]),
      ),
  }
}

function latest(generations: readonly (number | undefined)[]): number | undefined {
  const known = generations.filter((generation) => generation !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort()
}
