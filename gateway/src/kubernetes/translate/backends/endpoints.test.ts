import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Endpoint, EndpointSlice, Service } from '../../objects/core.ts'
import { mergeEndpoints } from './endpoints.ts'

const port = { port: 80, name: 'http' }
const service: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'app' },
  spec: { ports: [port] },
}

function sliceOf(endpoints: readonly Endpoint[], addressType = 'IPv4'): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'app' },
    addressType,
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [...endpoints],
  }
}

const flag = fc.constantFrom(undefined, true, false)
const endpoint: fc.Arbitrary<Endpoint> = fc.record({
  addresses: fc.integer({ min: 1, max: 6 }).map((last) => [`10.0.0.${last}`]),
  conditions: fc.record({ ready: flag, serving: flag, terminating: flag }),
})
const slices = fc.array(
  fc.array(endpoint, { maxLength: 4 }).map((list) => sliceOf(list)),
  { maxLength: 4 },
)

function hostsOf(list: readonly EndpointSlice[]): string[] {
  return mergeEndpoints(service, port, list).map(({ host }) => host)
}

describe('mergeEndpoints', () => {
  it('returns sorted hosts without duplicates, whatever the order of slices and endpoints', () => {
    fc.assert(
      fc.property(slices, (list) => {
        const hosts = hostsOf(list)
        expect(hosts).toEqual([...new Set(hosts)].sort())
        const reversed = list
          .toReversed()
          .map((slice) => ({ ...slice, endpoints: slice.endpoints?.toReversed() }))
        expect(hostsOf(reversed)).toEqual(hosts)
      }),
    )
  })

  it('uses all ready endpoints, or all that serve while they terminate, and no other', () => {
    fc.assert(
      fc.property(slices, (list) => {
        const all = list.flatMap(({ endpoints = [] }) => endpoints)
        const ready = all.filter(({ conditions }) => conditions?.ready !== false)
        const serving = all.filter(
          ({ conditions }) => conditions?.serving !== false && conditions?.terminating === true,
        )
        const expected = ready.length > 0 ? ready : serving
        const hosts = new Set(expected.map(({ addresses }) => `${addresses?.[0]}:8080`))
        expect(new Set(hostsOf(list))).toEqual(hosts)
      }),
    )
  })

  it('is independent of the distribution of endpoints over slices', () => {
    fc.assert(
      fc.property(slices, (list) => {
        const joined = sliceOf(list.flatMap(({ endpoints = [] }) => endpoints))
        expect(hostsOf([joined])).toEqual(hostsOf(list))
      }),
    )
  })

  it('ignores host names and ports of other names and protocols', () => {
    const [first] = [sliceOf([{ addresses: ['10.0.0.1'] }])]
    const others = [
      sliceOf([{ addresses: ['db.example.com'] }], 'FQDN'),
      { ...first, ports: [{ name: 'metrics', port: 9090 }] },
      { ...first, ports: [{ name: 'http', port: 8080, protocol: 'UDP' }] },
      { ...first, ports: [{ name: 'http' }] },
      { ...first, ports: undefined },
    ] as EndpointSlice[]
    expect(hostsOf(others)).toEqual([])
  })
})
