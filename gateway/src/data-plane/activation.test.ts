import { expect, it } from 'vitest'
import { fixtureConnection, fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { createAuthority } from '../../test/support/certificates.ts'
import { createCompileCache } from '../config/live/compile-cache.ts'
import { shareStructure } from '../config/live/structural-share.ts'
import type { Config } from '../config/schema.ts'
import type { Snapshot } from '../pipeline/snapshot.ts'
import { createMetrics } from '../telemetry/metrics/metrics.ts'
import { createActivation } from './activation.ts'

/** An activation whose listeners record the prepared snapshots. */
function fixtureActivation(readText: (path: string) => string = () => '') {
  const snapshots: Snapshot[] = []
  const cache = createCompileCache(readText)
  const activation = createActivation({
    context: { ...fixtureContext(), metrics: createMetrics(), ...cache },
    cache,
    bind: async () => {},
    facts: {
      version: 'test',
      sessionKey: undefined,
      ui: () => () => ({ status: 404, headers: {}, body: undefined }),
    },
    listeners: {
      find: () => undefined,
      keyOfPort: () => undefined,
      async prepare(next) {
        snapshots.push(next)
        return { commit() {}, abort() {} }
      },
      addresses: () => [],
      connections: () => ({}),
      announceDrain() {},
      drain: async () => {},
      close() {},
    },
  })
  return { activation, snapshots }
}

const config: Config = { backends: [{ name: 'a', endpoints: [{ host: '10.0.0.1:80' }] }] }

it('activates a change of endpoints without compiling', async () => {
  const { activation, snapshots } = fixtureActivation()
  await (await activation.prepare(config)).commit()
  const next = shareStructure<Config>(config, {
    backends: [{ name: 'a', endpoints: [{ host: '10.0.0.2:80' }] }],
  })
  const prepared = await activation.prepare(next)
  expect(activation.config).toBe(config)
  await prepared.commit()
  expect(activation.config).toBe(next)
  expect(snapshots).toHaveLength(1)
})

it('compiles a change of endpoints after a change of a file', async () => {
  const { activation, snapshots } = fixtureActivation()
  await (await activation.prepare(config)).commit()
  activation.evictFile('certificate.pem')
  await activation.prepare({ backends: [{ name: 'a', endpoints: [] }] })
  expect(snapshots).toHaveLength(2)
})

const routes: Config = {
  gateways: { g: { port: 80, listeners: [{ name: 'a', hostname: '*.test' }] } },
  routes: ['one', 'two'].map((name) => ({
    name,
    gateways: 'g/a',
    matches: [{ path: { exact: `/${name}` } }],
    backends: [{ host: '10.0.0.1:80' }],
    policies: { backendTLS: { root: `${name}.pem` } },
  })),
}

/** The compiled routes of the first listener. */
function routesOf(snapshot: Snapshot | undefined): unknown[] {
  const [listener] = snapshot?.listeners.values() ?? []
  if (listener?.kind !== 'http') throw new Error('no HTTP listener')
  return ['/one', '/two'].map((path) => {
    const { request } = fixtureExchange({ host: 'x.test', path }).facts
    return listener.match(request, fixtureConnection())?.target
  })
}

it('compiles only the edited one of several routes', async () => {
  const { activation, snapshots } = fixtureActivation(() => createAuthority().cert)
  await (await activation.prepare(routes)).commit()
  const [one, two] = routes.routes ?? []
  const edited = { ...one, policies: { ...one?.policies, requestHeaderModifier: { remove: ['x'] } } }
  await activation.prepare({ ...routes, routes: [edited, two].flatMap((route) => route ?? []) })
  const [before, after] = snapshots.map(routesOf)
  expect(after?.[0]).not.toBe(before?.[0])
  expect(after?.[1]).toBe(before?.[1])
})

it('compiles the routes again whose backend has a changed file', async () => {
  const read: string[] = []
  const { activation, snapshots } = fixtureActivation((path) => {
    read.push(path)
    return createAuthority().cert
  })
  await (await activation.prepare(routes)).commit()
  activation.evictFile('one.pem')
  const { files } = await activation.prepare({ ...routes })
  const [before, after] = snapshots.map(routesOf)
  expect(after?.[0]).not.toBe(before?.[0])
  expect(after?.[1]).toBe(before?.[1])
  expect(read).toEqual(['one.pem', 'two.pem', 'one.pem'])
  expect([...files.keys()].sort()).toEqual(['one.pem', 'two.pem'])
})
