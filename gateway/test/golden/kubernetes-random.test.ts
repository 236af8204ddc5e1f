import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compileOffline } from '../../src/app/validate-file.ts'
import { validateConfig } from '../../src/config/load/validate.ts'
import { createManifestReader } from '../../src/kubernetes/objects/manifests/manifests.ts'
import { parseManifest } from '../../src/kubernetes/objects/manifests/parse-manifest.ts'
import { createTranslator } from '../../src/kubernetes/translate/translate.ts'
import { randomObjects } from '../support/kubernetes-random-objects.ts'

const apiVersion = 'gateway.networking.k8s.io/v1'

/** A Gateway that routes of every kind can attach to. */
const fixed = [
  {
    apiVersion,
    kind: 'GatewayClass',
    metadata: { name: 'tollgate' },
    spec: { controllerName: 'tollgate.dev/controller' },
  },
  {
    apiVersion,
    kind: 'Gateway',
    metadata: { name: 'web' },
    spec: {
      gatewayClassName: 'tollgate',
      listeners: [
        { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
        { name: 'tcp', port: 90, protocol: 'TCP', allowedRoutes: { namespaces: { from: 'All' } } },
        { name: 'tls', port: 443, protocol: 'TLS', tls: { mode: 'Passthrough' } },
      ],
    },
  },
]

// An object that makes its Gateway's configuration invalid would stop all its neighbours.
it('random objects translate to configurations that are valid and compile', async () => {
  await fc.assert(
    fc.asyncProperty(randomObjects(), async (random) => {
      const read = createManifestReader({ parse: parseManifest, yieldPoint: () => undefined })
      const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...fixed, ...random] })
      // Objects with the key of an earlier one are dropped.
      const { objects } = await read([{ name: 'a.json', text }])
      for (const { config } of createTranslator()(objects).gateways.values()) {
        expect(validateConfig(config)).toEqual([])
        await compileOffline(config, {}, () => {})
      }
    }),
    { numRuns: 150 },
  )
})
